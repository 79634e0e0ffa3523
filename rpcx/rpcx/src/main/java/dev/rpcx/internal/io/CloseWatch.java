package dev.rpcx.internal.io;

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
 * Epoll handler of one event loop that tells the {@link WriteTurn} and the {@link ReadTurn} of a socket before the
 * socket is closed. The close waits for a thread that is using the socket, since the system may reuse the descriptor
 * for another connection.
 *
 * <p>This class and the turns rely on internals of Netty. {@code NettyVersionsTest} lists the versions that have been
 * checked.
 */
final class CloseWatch implements IoHandler {
    /** Lets threads other than the event loop use a socket. */
    interface SocketUser {
        /**
         * Called on the event loop before the socket is closed. After this method has returned, no other thread may use
         * the socket.
         */
        void socketCloses();
    }

    private final IoHandler epoll;

    /** Registered sockets of the event loop, by descriptor. Event loop only. */
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
     * Returns the registration of a socket that threads other than the event loop may use. Event loop only.
     *
     * @param connection the channel's handler that reads and writes the bytes of the socket
     * @return null if other threads may not use the socket: because another handler, such as TLS, comes before
     *     {@code connection}, because the event loop does not use epoll, or because the socket is not registered
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
        // an event loop that ends while it runs a task has not called prepareToDestroy, which closes the sockets
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

    /**
     * Registration of a socket. Passes calls between epoll and the socket's channel. Only epoll closes it. Event loop
     * only.
     */
    @SuppressWarnings("try")
    final class Registration implements IoRegistration, EpollIoHandle {
        private static final EpollIoOps READING = EpollIoOps.EPOLLIN.with(EpollIoOps.EPOLLRDHUP);

        private final EpollIoHandle channel;
        private @Nullable IoRegistration inEpoll;

        /** The {@link WriteTurn} of the socket; null if only the event loop writes. */
        @Nullable
        SocketUser writing;

        /** The {@link ReadTurn} of the socket; null if only the event loop reads. */
        @Nullable
        SocketUser reading;

        /** Events that the channel has asked for. */
        private EpollIoOps ops = EpollIoOps.NONE;

        /**
         * Turn to which the socket is lent; null if it is not lent. While it is lent, the channel gets no events for
         * bytes that arrive.
         */
        private @Nullable ReadTurn lentTo;

        Registration(EpollIoHandle channel) {
            this.channel = channel;
        }

        private IoRegistration inEpoll() {
            return Objects.requireNonNull(inEpoll);
        }

        /** Lends the socket to a turn until {@code resume} is called. */
        void pause(ReadTurn turn) {
            lentTo = turn;
            inEpoll().submit(heard());
        }

        void resume() {
            lentTo = null;
            inEpoll().submit(heard());
        }

        /**
         * Returns the events to ask epoll for. There is always at least one, since Netty removes a socket without
         * events from epoll for good. EPOLLERR serves for this: epoll always reports errors.
         */
        private EpollIoOps heard() {
            return lentTo == null ? ops : ops.without(READING).with(EpollIoOps.EPOLLERR);
        }

        @Override
        public void handle(IoRegistration registration, IoEvent event) {
            ReadTurn turn = lentTo;
            // epoll reports errors even while the socket is lent; if the turn cannot give the socket back yet, the
            // channel gets the error later
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
