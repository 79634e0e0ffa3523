package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.HandPlatform;
import dev.rpcx.RawPeer;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests the PINGs that a peer is sent, and the answers that it gives or not, under a simulated clock. */
class KeepAliveLooksTest {
    private static final long LOOK = TimeUnit.SECONDS.toNanos(3);

    private final MockTicker clock = Ticker.newMockTicker();
    private final Slow channel = new Slow(clock);
    private final Ledger ledger = new Ledger("alive", Map.of(), Map.of(), Integer.MAX_VALUE);
    private final Account account = Objects.requireNonNull(ledger.open(null));
    private final List<String> closed = new ArrayList<>();
    private int rests;
    private int lostEnds;
    private int sheds;
    private boolean failsToRest;
    private Runnable onClosed = () -> {};
    private final WireConnection connection = new WireConnection(channel, account) {
        @Override
        public void onPreface(int version) {}

        @Override
        public void onFrame(int head, int id, ByteBuf payload) {}

        @Override
        public int maxBytesTaken() {
            return Integer.MAX_VALUE;
        }

        @Override
        public void beforeRead() {}

        @Override
        public void trimIdle() {
            super.trimIdle();
            rests++;
            if (failsToRest) {
                throw new OutOfMemoryError("of this test");
            }
        }

        @Override
        public void trimActive() {
            super.trimActive();
            sheds++;
        }

        @Override
        public void endLost() {
            super.endLost();
            lostEnds++;
        }

        @Override
        public void onClosed(String why) {
            closed.add(why);
            onClosed.run();
        }
    };
    private final KeepAlive keepAlive = new KeepAlive(connection, 3 * LOOK);

    /** A socket that takes as many bytes as the test says. */
    private static final class Slow extends EmbeddedChannel {
        private int takes = Integer.MAX_VALUE;

        Slow(MockTicker clock) {
            super(EmbeddedChannel.builder().ticker(clock));
        }

        void take(int bytes) {
            takes = bytes;
            unsafe().flush();
        }

        @Override
        protected void doWrite(ChannelOutboundBuffer queue) throws Exception {
            if (takes == Integer.MAX_VALUE) {
                super.doWrite(queue);
                return;
            }
            while (queue.current() instanceof ByteBuf first && (takes > 0 || !first.isReadable())) {
                int bytes = Math.min(takes, first.readableBytes());
                takes -= bytes;
                queue.removeBytes(bytes);
            }
        }
    }

    @BeforeEach
    void start() {
        channel.pipeline().addLast(connection);
        keepAlive.start();
        assertThat(account.held(Resource.TIMERS)).isEqualTo(1);
    }

    @AfterEach
    void nothingIsLeft() {
        keepAlive.stop();
        connection.close("the test is over");
        channel.finishAndReleaseAll();
        account.close();
        assertThat(ledger.audit()).isEmpty();
        assertThat(channel.runScheduledPendingTasks()).as("no timer is left").isEqualTo(-1);
    }

    private void look() {
        clock.advance(LOOK, TimeUnit.NANOSECONDS);
        channel.runScheduledPendingTasks();
    }

    private int pings() {
        byte[] written = HandPlatform.written(channel);
        assertThat(written.length % 6).isZero();
        for (int at = 0; at < written.length; at += 6) {
            assertThat(written[at + 1]).isEqualTo((byte) Wire.PING);
        }
        return written.length / 6;
    }

    private void say() {
        channel.writeInbound(RawPeer.preface());
    }

    @Test
    void aSilentPeerIsAskedAfterAThirdOfTheTimeAndDisconnectedAfterTwo() {
        clock.advance(LOOK - 1, TimeUnit.NANOSECONDS);
        channel.runScheduledPendingTasks();
        assertThat(pings()).isZero();
        clock.advance(1, TimeUnit.NANOSECONDS);
        channel.runScheduledPendingTasks();
        assertThat(pings()).isEqualTo(1);
        assertThat(rests).isEqualTo(1);
        assertThat(closed).isEmpty();
        look();
        assertThat(closed).containsExactly("the peer was silent, and has not answered a PING for 3000 ms");
        assertThat(channel.isOpen()).isFalse();
        look();
        assertThat(account.held(Resource.TIMERS)).isZero();
    }

    /** A callback may block the loop. Then the timer runs first, and what has arrived is read after it. */
    @Test
    void anAnswerThatIsReadBehindTheTimerOfTheLookIsHeard() {
        look();
        assertThat(pings()).isEqualTo(1);
        clock.advance(LOOK, TimeUnit.NANOSECONDS);
        channel.eventLoop().schedule(connection::recordActivity, 0, TimeUnit.NANOSECONDS);
        channel.runScheduledPendingTasks();
        assertThat(closed).isEmpty();
        look();
        assertThat(pings()).isEqualTo(1);
        look();
        assertThat(closed).hasSize(1);
    }

    @Test
    void aPeerThatSpeaksIsNotAskedAndOneThatAnswersIsAskedAgain() {
        say();
        look();
        assertThat(pings()).isZero();
        look();
        assertThat(pings()).isEqualTo(1);
        connection.recordActivity();
        look();
        assertThat(pings()).isZero();
        look();
        assertThat(pings()).as("asked anew").isEqualTo(1);
        assertThat(closed).isEmpty();
        look();
        assertThat(closed).hasSize(1);
    }

    @Test
    void eachLookSendsWhatIsQueued() {
        say();
        List<String> told = new ArrayList<>();
        connection.send(new Outbound.Control(Wire.PONG, 7, Unpooled.EMPTY_BUFFER) {
            @Override
            public void onSent() {
                told.add("left");
            }
        });
        clock.advance(LOOK, TimeUnit.NANOSECONDS);
        keepAlive.run();
        assertThat(told).containsExactly("left");
    }

    @Test
    void eachLookEndsCallsThatOthersCouldNotEnd() {
        look();
        assertThat(lostEnds).isEqualTo(1);
        say();
        look();
        assertThat(lostEnds).isEqualTo(2);
    }

    @Test
    void aLivelyPeersConnectionIsToldToGiveUpAPartOfWhatItKeeps() {
        say();
        look();
        assertThat(sheds).isEqualTo(1);
        assertThat(rests).isZero();
        look();
        assertThat(sheds).as("it is silent").isEqualTo(1);
        assertThat(rests).isEqualTo(1);
    }

    /** Has the peer send one byte, so that a frame arrives byte by byte and the peer is heard all the time. */
    private void sayAByteOf(ByteBuf frame) {
        channel.writeInbound(Unpooled.buffer().writeByte(frame.readByte()));
    }

    private static ByteBuf frame() {
        return RawPeer.frame(Wire.PING, 7, Unpooled.buffer().writeZero(100));
    }

    @Test
    void aFrameThatDoesNotComeToItsEndInTheTimeEndsTheConnection() {
        say();
        ByteBuf frame = frame();
        for (int i = 0; i < 3; i++) {
            sayAByteOf(frame);
            look();
            assertThat(closed).isEmpty();
        }
        sayAByteOf(frame);
        look();
        assertThat(closed).containsExactly("a frame was begun and not ended in time");
        byte[] written = HandPlatform.written(channel);
        assertThat(written[1]).as("the peer is told").isEqualTo((byte) Wire.ERROR);
    }

    @Test
    void aFrameWhoseEndIsReadBehindTheTimerOfTheLookIsInTime() {
        say();
        ByteBuf frame = frame();
        for (int i = 0; i < 3; i++) {
            sayAByteOf(frame);
            look();
        }
        clock.advance(LOOK, TimeUnit.NANOSECONDS);
        // the loop reads its sockets between a timer that is due and one that is set to run at once
        channel.eventLoop().schedule(() -> channel.pipeline().fireChannelRead(frame), 0, TimeUnit.NANOSECONDS);
        channel.runScheduledPendingTasks();
        assertThat(closed).isEmpty();
        assertThat(connection.isBetweenFrames()).isTrue();
    }

    @Test
    void aFrameHasASecondHoweverShortTheKeepAliveTimeIs() {
        assertThat(KeepAlive.frameNanos(1)).isEqualTo(TimeUnit.SECONDS.toNanos(1));
        assertThat(KeepAlive.frameNanos(3 * LOOK)).isEqualTo(3 * LOOK);
    }

    private void reply(int bytes) {
        connection.sendNow(new Outbound.Control(Wire.REPLY, 1, Unpooled.buffer().writeZero(bytes)));
    }

    private void expectUnread() {
        assertThat(closed).containsExactly("the peer has read nothing for 9000 ms");
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void aPeerThatReadsNothingIsNotAskedAndDisconnectedWhenNothingIsSentInTheTime() {
        channel.config().setWriteBufferWaterMark(new WriteBufferWaterMark(100, 200));
        channel.take(0);
        reply(1_000);
        channel.config().setAutoRead(false);
        look();
        look();
        look();
        assertThat(closed).isEmpty();
        // one byte is sent, so the checks begin anew
        channel.take(1);
        look();
        look();
        look();
        assertThat(closed).isEmpty();
        look();
        expectUnread();
    }

    /** The deadlines of several calls pass one after the other, and each end is written. */
    @Test
    void whatIsWrittenToAPeerSaysNothingOfWhatItReads() {
        channel.config().setWriteBufferWaterMark(new WriteBufferWaterMark(100, 200));
        channel.take(0);
        channel.config().setAutoRead(false);
        for (int i = 0; i < 4; i++) {
            assertThat(closed).isEmpty();
            reply(1_000);
            look();
        }
        expectUnread();
    }

    /** These bytes are fewer than those that make this side stop reading. */
    @Test
    void aPeerThatSpeaksAndReadsNothingIsDisconnected() {
        say();
        channel.take(0);
        reply(1_000);
        for (int i = 0; i < 4; i++) {
            assertThat(closed).isEmpty();
            connection.recordActivity();
            look();
        }
        expectUnread();
    }

    @Test
    void aPeerThatReadsALittleNowAndThenIsKept() {
        say();
        channel.take(0);
        reply(1_000);
        reply(1_000);
        for (int i = 0; i < 20; i++) {
            channel.take(i % 3 == 0 ? 1 : 0);
            reply(100);
            connection.recordActivity();
            look();
        }
        assertThat(closed).isEmpty();
    }

    /** A PING would wait behind all these bytes. The answer may wait behind many bytes of the peer, too. */
    @Test
    void aSilentPeerThatTakesALittleOfMuchIsNotAskedUntilThereIsRoom() {
        channel.config().setWriteBufferWaterMark(new WriteBufferWaterMark(100, 200));
        channel.take(0);
        reply(1_000);
        for (int i = 0; i < 20; i++) {
            channel.take(1);
            look();
        }
        assertThat(closed).isEmpty();
        channel.take(1_000);
        look();
        assertThat(closed).isEmpty();
        look();
        assertThat(closed).containsExactly("the peer was silent, and has not answered a PING for 3000 ms");
    }

    /** Each message takes the place of an earlier one, in memory too. */
    @Test
    void aPeerThatReadsAllTheTimeIsKeptHoweverAlikeItsMessagesAre() {
        say();
        channel.take(0);
        reply(1_000);
        for (int i = 0; i < 20; i++) {
            reply(1_000);
            channel.take(1_006);
            channel.runPendingTasks();
            connection.recordActivity();
            look();
        }
        assertThat(closed).isEmpty();
    }

    @Test
    void aPeerThatReadsAgainInBetweenHasTheWholeTimeAnew() {
        for (int i = 0; i < 3; i++) {
            connection.recordActivity();
            channel.config().setAutoRead(false);
            look();
            look();
            channel.config().setAutoRead(true);
            connection.recordActivity();
            look();
        }
        assertThat(closed).isEmpty();
    }

    /** Its timer would not run again, and nobody would find that the peer is gone. */
    @Test
    void aConnectionThatCannotBeLookedAtEnds() {
        failsToRest = true;
        look();
        assertThat(closed).containsExactly("of this test");
        assertThat(channel.isOpen()).isFalse();
    }

    /** Otherwise nobody would learn of the fault: the exception of a timer's task is kept in its future. */
    @Test
    void aFaultAtTheEndOfASilentPeerIsLogged() {
        IllegalStateException fault = new IllegalStateException("of this test");
        onClosed = () -> {
            throw fault;
        };
        List<Throwable> logged = new ArrayList<>();
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord entry) {
                logged.add(entry.getThrown());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        Logger logger = Logger.getLogger("dev.rpcx.wire");
        logger.addHandler(handler);
        try {
            look();
            look();
        } finally {
            logger.removeHandler(handler);
        }
        assertThat(logged).containsExactly(fault);
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void afterTheEndItStopsByItself() {
        connection.close("of this test");
        keepAlive.run();
        assertThat(account.held(Resource.TIMERS)).isZero();
        assertThat(pings()).isZero();
    }
}
