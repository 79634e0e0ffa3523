package dev.rpcx;

import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.IoEvent;
import io.netty.channel.IoHandle;
import io.netty.channel.IoHandler;
import io.netty.channel.IoHandlerContext;
import io.netty.channel.IoHandlerFactory;
import io.netty.channel.IoOps;
import io.netty.channel.IoRegistration;
import io.netty.channel.epoll.EpollIoHandle;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollIoOps;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.unix.FileDescriptor;
import io.netty.util.concurrent.ThreadAwareExecutor;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Epoll for one event loop, which learns of every socket that is about to be closed: whatever closes one, the peer, an error, the loop's
 * end, it is first taken off the loop. Where a {@link WriteTurn} or a {@link ReadTurn} has a thread at the socket, it is waited for: the
 * number of a closed descriptor is soon another connection's.
 *
 * <p>The watch and the turns rely on how Netty works inside, which its next version may change:
 * {@code NettyVersionsTest} names those for which this holds.
 */
final class CloseWatch implements IoHandler {
    /** Has threads other than the event loop at a socket. */
    interface SocketUser {
        /**
         * The socket is about to be closed: no thread is at it when this returns, and none comes after. On the event
         * loop.
         */
        void socketCloses();
    }

    private final IoHandler epoll;

    /** The loop's alone. */
    private final Map<FileDescriptor, Registration> registrations = new HashMap<>();

    private CloseWatch(IoHandler epoll) {
        this.epoll = epoll;
    }

    static IoHandlerFactory factory() {
        IoHandlerFactory plain = EpollIoHandler.newFactory();
        return new IoHandlerFactory() {
            @Override
            public IoHandler newHandler(ThreadAwareExecutor executor) {
                return new CloseWatch(plain.newHandler(executor));
            }
        };
    }

    /**
     * Finds a socket that threads other than the event loop may write to or read from. On the event loop.
     *
     * @param connection the channel's handler whose bytes they are
     * @return null where they may not: TLS, or any other handler between connection and socket, would see nothing of it
     */
    static @Nullable Registration ofPlainSocket(Channel channel, ChannelHandler connection) {
        CloseWatch watch = Thread.currentThread() instanceof LoopThread loop ? loop.watch : null;
        return watch != null
                        && channel instanceof EpollSocketChannel epoll
                        && channel.pipeline().first() == connection
                ? watch.registrations.get(epoll.fd())
                : null;
    }

    @Override
    public void initialize() {
        if (Thread.currentThread() instanceof LoopThread loop) {
            loop.watch = this;
        }
        epoll.initialize();
    }

    @Override
    public int run(IoHandlerContext context) {
        return epoll.run(context);
    }

    @Override
    public void prepareToDestroy() {
        epoll.prepareToDestroy();
    }

    @Override
    public void destroy() {
        // once more: a loop that is ended while it runs a task ends without the step before, and its sockets stayed
        // open
        epoll.prepareToDestroy();
        epoll.destroy();
    }

    @Override
    public IoRegistration register(IoHandle handle) throws Exception {
        Registration registration = new Registration((EpollIoHandle) handle);
        registration.inEpoll = epoll.register(registration);
        registrations.put(registration.fd(), registration);
        return registration;
    }

    @Override
    public void wakeup() {
        epoll.wakeup();
    }

    @Override
    public boolean isCompatible(Class<? extends IoHandle> type) {
        return epoll.isCompatible(type);
    }

    /** Stands between epoll and a socket's channel. Closed by epoll alone, whose signature its own has. */
    @SuppressWarnings("try")
    final class Registration implements IoRegistration, EpollIoHandle {
        private static final EpollIoOps READING = EpollIoOps.EPOLLIN.with(EpollIoOps.EPOLLRDHUP);

        private final EpollIoHandle channel;
        private @Nullable IoRegistration inEpoll;

        /** Told before the socket closes, as {@link #reading} is. */
        @Nullable
        SocketUser writing;

        @Nullable
        SocketUser reading;

        /** What the channel wants to hear of. */
        private EpollIoOps ops = EpollIoOps.NONE;

        /** Who has the socket lent; the channel hears nothing of what arrives. */
        private @Nullable ReadTurn lentTo;

        Registration(EpollIoHandle channel) {
            this.channel = channel;
        }

        private IoRegistration inEpoll() {
            return Objects.requireNonNull(inEpoll);
        }

        /** On the event loop, as all that follows. */
        void pause(ReadTurn turn) {
            lentTo = turn;
            inEpoll().submit(heard());
        }

        void resume() {
            lentTo = null;
            inEpoll().submit(heard());
        }

        /** Never nothing: Netty would take the socket off epoll, and not find it there again. Errors are told in any case. */
        private EpollIoOps heard() {
            return lentTo == null ? ops : ops.without(READING).with(EpollIoOps.EPOLLERR);
        }

        @Override
        public void handle(IoRegistration registration, IoEvent event) {
            ReadTurn turn = lentTo;
            // an error is told in any case: the channel hears of it again when the socket is back
            if (turn == null || turn.takeForLoop()) {
                channel.handle(this, event);
            }
        }

        @Override
        public FileDescriptor fd() {
            return channel.fd();
        }

        @Override
        public void registered() {
            channel.registered();
        }

        @Override
        public void unregistered() {
            channel.unregistered();
        }

        @Override
        public void close() throws Exception {
            channel.close();
        }

        @Override
        public <T> T attachment() {
            return inEpoll().attachment();
        }

        @Override
        public long submit(IoOps wanted) {
            ops = (EpollIoOps) wanted;
            return inEpoll().submit(heard());
        }

        @Override
        public boolean isValid() {
            return inEpoll().isValid();
        }

        @Override
        public boolean cancel() {
            registrations.remove(channel.fd(), this);
            if (writing != null) {
                writing.socketCloses();
            }
            if (reading != null) {
                reading.socketCloses();
            }
            return inEpoll().cancel();
        }
    }
}
