package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.io.HalfClose;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOption;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.util.ReferenceCountUtil;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests the end of a connection whose last bytes this system has taken, but the peer's system has not. */
class LastWordsTest {
    /** The peer's system takes fewer bytes for a program that does not read, and the system here takes more. */
    private static final int BYTES = 400_000;

    private final Ledger ledger = new Ledger("half closed", Map.of(), Map.of(), Integer.MAX_VALUE);
    private final Account account = Objects.requireNonNull(ledger.open(null));
    private final CompletableFuture<Channel> taken = new CompletableFuture<>();
    private MultiThreadIoEventLoopGroup loops;
    private Channel listening;

    /** Writes all bytes at once, and half-closes the connection after them. */
    private final class Writer extends ChannelInboundHandlerAdapter {
        @Override
        public void channelActive(ChannelHandlerContext ctx) {
            ctx.writeAndFlush(Unpooled.buffer(BYTES).writeZero(BYTES));
            HalfClose.of(ctx.channel(), account);
            taken.complete(ctx.channel());
        }

        @Override
        public void channelRead(ChannelHandlerContext ctx, Object message) {
            ReferenceCountUtil.release(message);
        }
    }

    @BeforeEach
    void listen() throws InterruptedException {
        Assumptions.assumeTrue(Epoll.isAvailable());
        loops = new MultiThreadIoEventLoopGroup(1, EpollIoHandler.newFactory());
        listening = new ServerBootstrap()
                .group(loops)
                .channel(EpollServerSocketChannel.class)
                .childOption(ChannelOption.SO_SNDBUF, 2 * BYTES)
                .childHandler(new Writer())
                .bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
                .sync()
                .channel();
    }

    @AfterEach
    void nothingIsLeft() throws Exception {
        if (loops != null) {
            listening.close().sync();
            loops.shutdownGracefully(0, 5, TimeUnit.SECONDS).sync();
        }
        account.close();
        assertThat(ledger.audit()).isEmpty();
    }

    private Socket connected() throws Exception {
        Socket socket = new Socket();
        socket.setReceiveBufferSize(4 << 10);
        socket.setSoTimeout(10_000);
        socket.connect(listening.localAddress());
        return socket;
    }

    /** A byte of the peer would reset a socket that is closed before, and a reset throws away what is left. */
    @Test
    void theyArriveAtAPeerThatReadsLateAndSaysSomethingMeanwhile() throws Exception {
        try (Socket socket = connected()) {
            Channel channel = taken.get(10, TimeUnit.SECONDS);
            assertThat(channel.closeFuture().await(1_400))
                    .as("closed before they had arrived")
                    .isFalse();
            socket.getOutputStream().write(1);
            assertThat(socket.getInputStream().readAllBytes()).hasSize(BYTES);
            socket.getOutputStream().write(1);
            assertThat(channel.closeFuture().await(10_000))
                    .as("a second behind them")
                    .isTrue();
        }
    }

    @Test
    void aPeerThatNeverReadsThemHasItsTimeAndNoMore() throws Exception {
        try (Socket socket = connected()) {
            Channel channel = taken.get(10, TimeUnit.SECONDS);
            assertThat(channel.closeFuture().await(10_000)).isTrue();
            assertThat(socket.isConnected()).isTrue();
        }
    }
}
