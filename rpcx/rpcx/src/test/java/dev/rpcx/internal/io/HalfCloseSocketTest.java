package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOption;
import io.netty.channel.ManualIoEventLoop;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.util.ReferenceCountUtil;
import io.netty.util.concurrent.Ticker;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests the last bytes of a connection if this system has them and the peer does not take them, over sockets and under
 * a simulated clock.
 */
@Timeout(60)
class HalfCloseSocketTest {
    /**
     * These are more bytes than the peer's system takes for a program that does not read, and fewer than this system
     * takes.
     */
    private static final int BYTES = 200_000;

    /**
     * Silence for which the test waits. The system's clock says when it last sent something, and anything within 500 ms
     * counts as now.
     */
    private static final int SILENT_MILLIS = 700;

    private final Clock clock = new Clock();
    private final Ledger ledger = new Ledger("half closed", Map.of(), Map.of(), Integer.MAX_VALUE);
    private final Account account = Objects.requireNonNull(ledger.open(null));
    private ManualIoEventLoop loop;
    private ServerSocket listening;
    private Socket peer;
    private Channel channel;

    private static final class Clock implements Ticker {
        long now;

        /** If true, the clock runs by itself. A loop that ends waits for some time to pass. */
        boolean runs;

        @Override
        public long initialNanoTime() {
            return 0;
        }

        @Override
        public long nanoTime() {
            return runs ? ++now : now;
        }

        @Override
        public void sleep(long delay, TimeUnit unit) {
            throw new UnsupportedOperationException();
        }
    }

    @BeforeEach
    void writeAndClose() throws Exception {
        Assumptions.assumeTrue(Epoll.isAvailable());
        loop = new ManualIoEventLoop(null, Thread.currentThread(), EpollIoHandler.newFactory(), clock);
        listening = new ServerSocket();
        listening.setReceiveBufferSize(4 << 10);
        listening.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        ChannelFuture connecting = new Bootstrap()
                .group(loop)
                .channel(EpollSocketChannel.class)
                .option(ChannelOption.SO_SNDBUF, 4 * BYTES)
                .handler(new ChannelInboundHandlerAdapter() {
                    @Override
                    public void channelRead(ChannelHandlerContext ctx, Object message) {
                        ReferenceCountUtil.release(message);
                    }
                })
                .connect(listening.getLocalSocketAddress());
        while (!connecting.isDone()) {
            loop.runNow();
        }
        channel = connecting.sync().channel();
        peer = listening.accept();
        channel.writeAndFlush(Unpooled.buffer(BYTES).writeZero(BYTES));
        HalfClose.allow(channel, () -> Long.MAX_VALUE);
        HalfClose.of(channel, account);
        loop.runNow();
        assertThat(((EpollSocketChannel) channel).isOutputShutdown())
                .as("the system has all")
                .isTrue();
    }

    @AfterEach
    void nothingIsLeft() throws Exception {
        if (loop != null) {
            channel.close();
            peer.close();
            listening.close();
            clock.runs = true;
            loop.shutdownGracefully(0, 0, TimeUnit.SECONDS);
            while (!loop.isTerminated()) {
                loop.runNow();
            }
        }
        account.close();
        assertThat(ledger.audit()).isEmpty();
    }

    /** Waits until the system itself says that it has sent nothing for long. */
    private void awaitSilence() {
        await().until(() -> ((EpollSocketChannel) channel).tcpInfo().lastDataSent() >= SILENT_MILLIS);
    }

    private void pass(long millis) {
        clock.now += TimeUnit.MILLISECONDS.toNanos(millis);
        loop.runNow();
    }

    /**
     * Counts how often the channel is checked until it is closed.
     *
     * @return the number of checks
     */
    private int looks() {
        for (int looks = 0; looks < 100; looks++) {
            if (!channel.isOpen()) {
                return looks;
            }
            pass(500);
        }
        throw new AssertionError("open for ever");
    }

    @Test
    void aPeerThatTakesNothingHasTwoSecondsHoweverMuchItsOwnerAllows() throws Exception {
        awaitSilence();
        assertThat(looks()).isEqualTo(4);
    }

    /** The system sends more to the peer each time. */
    @Test
    void aPeerThatReadsSlowlyHasTenSecondsFromWhatItHasTakenLast() throws Exception {
        for (int look = 0; look < 10; look++) {
            assertThat(peer.getInputStream().readNBytes(10_000)).hasSize(10_000);
            pass(500);
            assertThat(channel.isOpen()).isTrue();
        }
        awaitSilence();
        // there is one more check if the system has learnt only now of what was last read
        assertThat(looks()).isBetween(20, 21);
    }

    @Test
    void aPeerThatHasAllHasASecondForItsOwnEnd() throws Exception {
        pass(500);
        assertThat(peer.getInputStream().readAllBytes()).hasSize(BYTES);
        pass(500);
        pass(999);
        assertThat(channel.isOpen()).isTrue();
        pass(1);
        assertThat(channel.isOpen()).isFalse();
    }
}
