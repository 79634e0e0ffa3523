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
 * Delays the close of a socket until no thread other than the event loop uses the socket. Otherwise such a thread could
 * read or write another connection to which the system has given the same file descriptor. The socket's
 * {@link WriteTurn} and {@link ReadTurn} wait for such threads.
 *
 * <p>This class wraps the epoll handler of one event loop, and relies on internals of Netty. {@code NettyVersionsTest}
 * lists the versions of Netty that have been checked.
 */
final class CloseWatch implements IoHandler {
    /** Object with which threads other than the event loop use a socket: a {@link WriteTurn} or a {@link ReadTurn}. */
    interface SocketUser {
        /**
         * Waits until no other thread uses the socket, and prevents any further use by other threads. Called on the
         * event loop, before the socket is closed.
         */
        void socketCloses();
    }

    private final IoHandler epoll;

    /** Registrations of this event loop's sockets, by file descriptor. Used on the event loop only. */
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
     * Returns the registration of a socket, if not only the event loop but also other threads can read and write the
     * socket. Other threads can do so only with epoll, and only if no other handler, such as TLS, comes before the
     * handler {@code connection} in the channel's pipeline. Called on the event loop only.
     *
     * @param connection the channel's handler that reads and writes the bytes of the socket
     * @return null if only the event loop can use the socket, or if the socket is not registered
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
     * Registration of one socket at epoll. Stands between epoll and the socket's channel, and passes the method calls
     * of each to the other. Only Netty's epoll handler calls {@code close}. Used on the event loop only.
     */
    @SuppressWarnings("try")
    final class Registration implements IoRegistration, EpollIoHandle {
        private static final EpollIoOps READING = EpollIoOps.EPOLLIN.with(EpollIoOps.EPOLLRDHUP);

        private final EpollIoHandle channel;
        private @Nullable IoRegistration inEpoll;

        /** The {@link WriteTurn} with which other threads write to this socket; null if only the event loop writes. */
        @Nullable
        SocketUser writing;

        /** The {@link ReadTurn} with which another thread can read this socket; null if only the event loop reads. */
        @Nullable
        SocketUser reading;

        /** Events that the channel wants to get from epoll. */
        private EpollIoOps ops = EpollIoOps.NONE;

        /**
         * The {@link ReadTurn} to which the socket is lent, so that other threads can read the socket; null while the
         * event loop reads. While the socket is lent, the channel gets no events for bytes that arrive.
         */
        private @Nullable ReadTurn lentTo;

        Registration(EpollIoHandle channel) {
            this.channel = channel;
        }

        private IoRegistration inEpoll() {
            return Objects.requireNonNull(inEpoll);
        }

        /**
         * Lends the socket to {@code turn}. Until {@code resume} is called, the channel gets no events for bytes that
         * arrive.
         */
        void pause(ReadTurn turn) {
            lentTo = turn;
            inEpoll().submit(heard());
        }

        void resume() {
            lentTo = null;
            inEpoll().submit(heard());
        }

        /**
         * Returns the events that epoll should report. While the socket is lent to callers, EPOLLERR is always one of
         * them, because Netty removes a socket without events from epoll for good. EPOLLERR changes nothing else, since
         * epoll reports errors even if they are not asked for.
         */
        private EpollIoOps heard() {
            return lentTo == null ? ops : ops.without(READING).with(EpollIoOps.EPOLLERR);
        }

        @Override
        public void handle(IoRegistration registration, IoEvent event) {
            ReadTurn turn = lentTo;
            // Epoll reports errors even while the socket is lent to callers. The channel gets the error at once if the
            // event loop can take the socket back from the callers, and otherwise later.
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
            // The users are told while the socket is still open, and wait for the other threads. Tested by
            // {@code CloseWatchTest.whoeverClosesASocketItsUsersAreToldByTheLoopWhileItIsOpen}.
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
