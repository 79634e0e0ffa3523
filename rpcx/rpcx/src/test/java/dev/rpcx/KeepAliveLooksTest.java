package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Signs of life, asked for and missed, by a hand clock. */
class KeepAliveLooksTest {
    private static final long LOOK = TimeUnit.SECONDS.toNanos(3);

    private final MockTicker clock = Ticker.newMockTicker();
    private final EmbeddedChannel channel =
            EmbeddedChannel.builder().ticker(clock).build();
    private final Ledger ledger = new Ledger("alive", Map.of(), Map.of(), Integer.MAX_VALUE);
    private final Account account = Objects.requireNonNull(ledger.open(null));
    private final List<String> closed = new ArrayList<>();
    private int rests;
    private final WireConnection connection = new WireConnection(channel, account) {
        @Override
        void onPreface(int version) {}

        @Override
        void onFrame(int head, int id, ByteBuf payload) {}

        @Override
        int maxBytesTaken() {
            return Integer.MAX_VALUE;
        }

        @Override
        void beforeRead() {}

        @Override
        void rest() {
            super.rest();
            rests++;
        }

        @Override
        void onClosed(String why) {
            closed.add(why);
        }
    };
    private final KeepAlive keepAlive = new KeepAlive(connection, 3 * LOOK);

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
    void aSilentPeerIsAskedAfterAThirdOfTheTimeAndLeftAfterTwo() {
        clock.advance(LOOK - 1, TimeUnit.NANOSECONDS);
        channel.runScheduledPendingTasks();
        assertThat(pings()).isZero();
        clock.advance(1, TimeUnit.NANOSECONDS);
        channel.runScheduledPendingTasks();
        assertThat(pings()).isEqualTo(1);
        assertThat(rests).isEqualTo(1);
        assertThat(closed).isEmpty();
        look();
        assertThat(closed).containsExactly("the peer has not been heard for 9000 ms");
        assertThat(channel.isOpen()).isFalse();
        look();
        assertThat(account.held(Resource.TIMERS)).isZero();
    }

    @Test
    void aPeerThatSpeaksIsNotAskedAndOneThatAnswersIsAskedAgain() {
        say();
        look();
        assertThat(pings()).isZero();
        look();
        assertThat(pings()).isEqualTo(1);
        connection.hear();
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
            void left() {
                told.add("left");
            }
        });
        clock.advance(LOOK, TimeUnit.NANOSECONDS);
        keepAlive.run();
        assertThat(told).containsExactly("left");
    }

    @Test
    void aPeerThatReadsNothingIsNotAskedAndLeftWhenNothingLeavesInTheTime() {
        ChannelOutboundHandlerAdapter deaf = new ChannelOutboundHandlerAdapter() {
            @Override
            public void flush(ChannelHandlerContext ctx) {}
        };
        channel.config().setWriteBufferWaterMark(new WriteBufferWaterMark(100, 200));
        channel.pipeline().addFirst(deaf);
        connection.sendNow(new Outbound.Control(Wire.REPLY, 1, Unpooled.buffer().writeZero(1_000)));
        channel.config().setAutoRead(false);
        look();
        look();
        look();
        assertThat(closed).isEmpty();
        // something leaves: it is looked for anew
        connection.sendNow(new Outbound.Control(Wire.REPLY, 1, Unpooled.buffer().writeZero(10)));
        look();
        look();
        look();
        assertThat(closed).isEmpty();
        look();
        assertThat(closed).containsExactly("the peer has read nothing for 9000 ms");
        assertThat(channel.isOpen()).isFalse();
    }

    @Test
    void aPeerThatReadsAgainInBetweenHasTheWholeTimeAnew() {
        for (int i = 0; i < 3; i++) {
            connection.hear();
            channel.config().setAutoRead(false);
            look();
            look();
            channel.config().setAutoRead(true);
            connection.hear();
            look();
        }
        assertThat(closed).isEmpty();
    }

    @Test
    void afterTheEndItStopsByItself() {
        connection.close("of this test");
        keepAlive.run();
        assertThat(account.held(Resource.TIMERS)).isZero();
        assertThat(pings()).isZero();
    }
}
