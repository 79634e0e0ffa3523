package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.rpcx.Accepted;
import dev.rpcx.RawPeer;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.epoll.Epoll;
import io.netty.channel.epoll.EpollSocketChannel;
import java.io.IOException;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Tests the sockets of an event loop that uses epoll: which of them other threads may use, and who is notified before a
 * socket is closed.
 */
@Timeout(60)
class CloseWatchTest {
    private static final int PATIENCE_MILLIS = 10_000;

    private static final class Handler extends ChannelInboundHandlerAdapter {
        @Override
        public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
            // the channel closes all the same
        }
    }

    enum Closes {
        THIS_SIDE,
        PEER,
        RESET,
        LOOP
    }

    private final Loops loops = new Loops(1, "watch", false);
    private final ChannelHandler connection = new Handler();
    private final RawPeer peer;
    private final EpollSocketChannel channel;

    CloseWatchTest() throws Exception {
        CompletableFuture<Channel> made = new CompletableFuture<>();
        peer = Accepted.by(loops, loops.server(), each -> {
                    made.complete(each);
                    return connection;
                })
                .peer();
        channel = (EpollSocketChannel) made.join();
    }

    @BeforeAll
    static void epoll() {
        assumeTrue(Epoll.isAvailable(), "the watch is for epoll");
    }

    @AfterEach
    void end() throws IOException {
        peer.close();
        loops.close(Long.MAX_VALUE);
    }

    private <T> T onLoop(Supplier<T> asks) {
        return CompletableFuture.supplyAsync(asks, channel.eventLoop())
                .orTimeout(PATIENCE_MILLIS, TimeUnit.MILLISECONDS)
                .join();
    }

    private CloseWatch.@Nullable Registration plain(ChannelHandler of) {
        return CloseWatch.ofPlainSocket(channel, of);
    }

    @Test
    void aSocketIsForOtherThreadsWhereNothingStandsBetweenItAndItsConnection() {
        CloseWatch.Registration found = Objects.requireNonNull(onLoop(() -> plain(connection)));
        assertThat(found.fd()).isSameAs(channel.fd());
        assertThat(plain(connection)).as("asked for by another thread").isNull();
        boolean isForAnother = onLoop(() -> plain(new Handler()) != null);
        assertThat(isForAnother).isFalse();
        boolean isSeenThrough = onLoop(() -> {
            channel.pipeline().addFirst(new Handler());
            return plain(connection) != null;
        });
        assertThat(isSeenThrough).isFalse();
    }

    private void close(Closes by) throws IOException {
        switch (by) {
            case THIS_SIDE -> channel.close();
            case PEER -> peer.close();
            case RESET -> {
                peer.socket.setSoLinger(true, 0);
                peer.close();
            }
            case LOOP -> loops.end();
        }
    }

    /** After a socket has been closed, its number may belong to another one. */
    @ParameterizedTest
    @EnumSource
    void whoeverClosesASocketItsUsersAreToldByTheLoopWhileItIsOpen(Closes by) throws IOException {
        Map<String, Boolean> inTime = new ConcurrentHashMap<>();
        boolean isPlain = onLoop(() -> {
            CloseWatch.Registration found = plain(connection);
            if (found == null) {
                return false;
            }
            // they may be notified again after it has been closed
            BooleanSupplier isOpen = () ->
                    Thread.currentThread() instanceof LoopThread && found.fd().isOpen();
            found.writing = () -> inTime.putIfAbsent("writing", isOpen.getAsBoolean());
            found.reading = () -> inTime.putIfAbsent("reading", isOpen.getAsBoolean());
            return true;
        });
        assertThat(isPlain).isTrue();
        close(by);
        assertThat(channel.closeFuture().awaitUninterruptibly(PATIENCE_MILLIS)).isTrue();
        assertThat(inTime).isEqualTo(Map.of("writing", true, "reading", true));
    }
}
