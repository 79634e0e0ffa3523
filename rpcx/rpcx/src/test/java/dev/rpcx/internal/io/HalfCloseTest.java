package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.HandPlatform;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.channel.socket.DuplexChannel;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests the end of a connection whose last bytes have to arrive, under a simulated clock. */
class HalfCloseTest {
    private static final int ALERT = 21;

    /** A socket that records what is asked of it, in order. While it is held, it takes nothing. */
    private static class Socket extends EmbeddedChannel {
        final List<String> told = new ArrayList<>();
        boolean isHeld;

        /** Number of bytes that the socket takes although it is held. */
        int takes;

        Socket(MockTicker ticker) {
            super(EmbeddedChannel.builder().ticker(ticker));
        }

        @Override
        protected void doWrite(ChannelOutboundBuffer queue) {
            while (takes > 0 && queue.current() instanceof ByteBuf bytes) {
                int taken = Math.min(takes, bytes.readableBytes());
                takes -= taken;
                queue.progress(taken);
                queue.removeBytes(taken);
            }
            while (!isHeld && queue.current() instanceof ByteBuf bytes) {
                if (bytes.isReadable()) {
                    told.add(bytes.getByte(bytes.readerIndex()) == ALERT ? "alert" : "bytes");
                }
                queue.remove();
            }
        }

        @Override
        protected void doClose() throws Exception {
            told.add("closed");
            super.doClose();
        }

        void take(int bytes) {
            takes = bytes;
            flush();
            runPendingTasks();
        }

        void letGo() {
            isHeld = false;
            flush();
            runPendingTasks();
        }
    }

    /** A socket whose output can be ended alone. */
    private static final class Duplex extends Socket implements DuplexChannel {
        Duplex(MockTicker ticker) {
            super(ticker);
        }

        @Override
        public ChannelFuture shutdownOutput() {
            return shutdownOutput(newPromise());
        }

        @Override
        public ChannelFuture shutdownOutput(ChannelPromise promise) {
            told.add("end of output");
            return promise.setSuccess();
        }

        @Override
        public boolean isInputShutdown() {
            return false;
        }

        @Override
        public ChannelFuture shutdownInput() {
            throw new UnsupportedOperationException();
        }

        @Override
        public ChannelFuture shutdownInput(ChannelPromise promise) {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean isOutputShutdown() {
            return told.contains("end of output");
        }

        @Override
        public boolean isShutdown() {
            return false;
        }

        @Override
        public ChannelFuture shutdown() {
            throw new UnsupportedOperationException();
        }

        @Override
        public ChannelFuture shutdown(ChannelPromise promise) {
            throw new UnsupportedOperationException();
        }
    }

    private final MockTicker ticker = Ticker.newMockTicker();
    private final Ledger ledger = new Ledger("half closed", Map.of(), Map.of(), Integer.MAX_VALUE);
    private final Account account = Objects.requireNonNull(ledger.open(null));
    private final List<Socket> all = new ArrayList<>();

    private Duplex duplex() {
        Duplex socket = new Duplex(ticker);
        all.add(socket);
        return socket;
    }

    private static void write(Socket socket) {
        socket.writeAndFlush(Unpooled.buffer().writeZero(10));
    }

    private void pass(Socket socket, long millis) {
        ticker.advance(millis, TimeUnit.MILLISECONDS);
        socket.runPendingTasks();
    }

    private long timers() {
        return ledger.held(Resource.TIMERS);
    }

    @AfterEach
    void nothingIsLeft() {
        for (Socket socket : all) {
            socket.letGo();
            socket.close();
        }
        account.close();
        assertThat(ledger.audit()).isEmpty();
    }

    @Test
    void theEndOfTheOutputFollowsWhatWasWrittenAndThePeerHasASecondForItsOwn() {
        Duplex socket = duplex();
        socket.isHeld = true;
        write(socket);
        HalfClose.of(socket, account);
        assertThat(socket.told).isEmpty();
        assertThat(timers()).isEqualTo(1);
        socket.letGo();
        assertThat(socket.told).containsExactly("bytes", "end of output");
        pass(socket, 999);
        assertThat(socket.isOpen()).isTrue();
        assertThat(timers()).isEqualTo(1);
        pass(socket, 1);
        assertThat(socket.told).containsExactly("bytes", "end of output", "closed");
        assertThat(timers()).isZero();
    }

    @Test
    void aPeerThatDoesNotReadHasTwoSeconds() {
        Duplex socket = duplex();
        socket.isHeld = true;
        write(socket);
        HalfClose.of(socket, account);
        pass(socket, 500);
        pass(socket, 500);
        pass(socket, 500);
        pass(socket, 499);
        assertThat(socket.isOpen()).isTrue();
        pass(socket, 1);
        assertThat(socket.told).containsExactly("closed");
        assertThat(timers()).isZero();
    }

    /** Tasks that became due meanwhile come first, such as to write what the peer takes. */
    @Test
    void timeInWhichTheLoopIsKeptFromItsSocketsCountsAsOneLook() {
        Duplex socket = duplex();
        HalfClose.allow(socket, () -> Long.MAX_VALUE);
        socket.isHeld = true;
        write(socket);
        HalfClose.of(socket, account);
        pass(socket, 10_000);
        assertThat(socket.isOpen()).isTrue();
    }

    /** The peer takes a byte of a large reply now and then. The connection goes on as long as its owner allows. */
    @Test
    void aPeerThatTakesSomeHasTheTimeThatTheOwnerGivesIt() {
        Duplex socket = duplex();
        AtomicLong allowed = new AtomicLong(Long.MAX_VALUE);
        HalfClose.allow(socket, allowed::get);
        socket.isHeld = true;
        socket.writeAndFlush(Unpooled.buffer().writeZero(100));
        HalfClose.of(socket, account);
        for (int second = 0; second < 20; second++) {
            socket.take(1);
            pass(socket, 500);
            pass(socket, 500);
        }
        assertThat(socket.told).isEmpty();
        assertThat(socket.isOpen()).isTrue();
        allowed.set(TimeUnit.SECONDS.toNanos(21));
        socket.take(1);
        pass(socket, 500);
        assertThat(socket.isOpen()).isTrue();
        socket.take(1);
        pass(socket, 500);
        assertThat(socket.told).containsExactly("closed");
        assertThat(timers()).isZero();
    }

    @Test
    void aPeerThatHasTakenSomeHasTenSecondsToTakeMore() {
        Duplex socket = duplex();
        HalfClose.allow(socket, () -> Long.MAX_VALUE);
        socket.isHeld = true;
        write(socket);
        HalfClose.of(socket, account);
        pass(socket, 500);
        socket.take(1);
        for (int look = 0; look < 20; look++) {
            pass(socket, 500);
            assertThat(socket.isOpen()).isTrue();
        }
        pass(socket, 500);
        assertThat(socket.told).containsExactly("closed");
    }

    /** After that the first message in the queue has the same length as the first one before. */
    @Test
    void aPeerThatTakesAWholeMessageHasTakenSome() {
        Duplex socket = duplex();
        HalfClose.allow(socket, () -> Long.MAX_VALUE);
        socket.isHeld = true;
        write(socket);
        write(socket);
        HalfClose.of(socket, account);
        pass(socket, 500);
        socket.take(10);
        for (int look = 0; look < 6; look++) {
            pass(socket, 500);
        }
        assertThat(socket.isOpen()).isTrue();
    }

    @Test
    void aChannelWhoseHalfCloseCannotBeginIsClosed() {
        HandPlatform.HandTicker failing = new HandPlatform.HandTicker();
        Duplex socket = new Duplex(failing);
        all.add(socket);
        failing.failAt(1);
        assertThatThrownBy(() -> HalfClose.of(socket, account)).isInstanceOf(OutOfMemoryError.class);
        assertThat(socket.told).containsExactly("closed");
        assertThat(timers()).isZero();
    }

    @Test
    void withoutAnOwnersWordOneThatTakesSomeHasTwoSecondsToo() {
        Duplex socket = duplex();
        socket.isHeld = true;
        write(socket);
        HalfClose.of(socket, account);
        for (int look = 0; look < 4; look++) {
            assertThat(socket.isOpen()).isTrue();
            socket.take(1);
            pass(socket, 500);
        }
        assertThat(socket.told).containsExactly("closed");
    }

    @Test
    void aPeerThatReadsLateHasItsSecondFromThenOn() {
        Duplex socket = duplex();
        socket.isHeld = true;
        write(socket);
        HalfClose.of(socket, account);
        pass(socket, 1_500);
        socket.letGo();
        pass(socket, 999);
        assertThat(socket.isOpen()).isTrue();
        pass(socket, 1);
        assertThat(socket.isOpen()).isFalse();
    }

    /**
     * Otherwise the channel would not be checked again, and the peer would keep the connection for as long as it likes.
     */
    @Test
    void aChannelThatCannotBeLookedAtIsClosed() {
        Duplex socket = duplex();
        HalfClose.allow(socket, () -> {
            throw new OutOfMemoryError("of this test");
        });
        socket.isHeld = true;
        write(socket);
        HalfClose.of(socket, account);
        pass(socket, 500);
        assertThat(socket.told).containsExactly("closed");
        assertThat(timers()).isZero();
    }

    @Test
    void whereThePeerClosesFirstNoTimerIsLeft() {
        Duplex socket = duplex();
        HalfClose.of(socket, account);
        socket.unsafe().close(socket.newPromise());
        socket.runPendingTasks();
        assertThat(timers()).isZero();
        assertThat(socket.runScheduledPendingTasks()).isEqualTo(-1);
    }

    @Test
    void whatStillComesIsReadAlsoWhereNobodyHasReadBefore() {
        Duplex socket = duplex();
        socket.config().setAutoRead(false);
        HalfClose.of(socket, account);
        assertThat(socket.config().isAutoRead()).isTrue();
    }

    /** The peer learns that nothing was cut off before it learns of the end of the stream. */
    @Test
    void withinTlsItsLastWordIsSentFirst() throws Exception {
        Duplex socket = duplex();
        socket.pipeline().addLast(SslContextBuilder.forClient().build().newHandler(socket.alloc()));
        socket.told.clear();
        HalfClose.of(socket, account);
        socket.runPendingTasks();
        assertThat(socket.told).containsSubsequence("alert", "end of output");
        assertThat(socket.isOpen()).isTrue();
        pass(socket, 1_000);
        assertThat(socket.isOpen()).isFalse();
    }

    @Test
    void whereTheOutputCannotEndAloneTheChannelClosesBehindWhatWasWritten() {
        Socket socket = new Socket(ticker);
        all.add(socket);
        socket.isHeld = true;
        write(socket);
        HalfClose.of(socket, account);
        assertThat(socket.told).isEmpty();
        socket.letGo();
        assertThat(socket.told).containsExactly("bytes", "closed");
        assertThat(timers()).isZero();
    }

    @Test
    void aChannelThatCannotBeWrittenToClosesAtOnce() {
        Duplex socket = duplex();
        socket.pipeline().addLast(new ChannelOutboundHandlerAdapter() {
            @Override
            public void write(ChannelHandlerContext ctx, Object message, ChannelPromise promise) {
                promise.setFailure(new IllegalStateException("by the test"));
            }
        });
        HalfClose.of(socket, account);
        assertThat(socket.told).containsExactly("closed");
        assertThat(timers()).isZero();
    }

    @Test
    void aChannelThatIsClosedIsLeftAlone() {
        Duplex socket = duplex();
        socket.close();
        HalfClose.of(socket, account);
        socket.runPendingTasks();
        assertThat(socket.told).containsExactly("closed");
        assertThat(timers()).isZero();
    }
}
