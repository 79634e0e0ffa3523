package dev.rpcx.internal.io;

import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.DefaultSelectStrategyFactory;
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
import io.netty.channel.unix.Socket;
import io.netty.util.concurrent.ThreadAwareExecutor;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Delays the close of a socket until no thread other than the event loop uses the socket. Otherwise such a thread could
 * read or write another connection to which the system has given the same file descriptor. The socket's
 * {@link WriteTurn} and {@link ReadTurn} wait for such threads.
 *
 * <p>This class wraps the epoll handler of one event loop. It is the only class that relies on internals of Netty's
 * epoll transport: the turns read, write and wait through its {@link Registration} and its {@link ReadWait}.
 * {@code NettyVersionsTest} lists the versions of Netty that have been checked.
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

    /** A socket that other threads than the event loop can write to. */
    interface DirectSocket {
        /**
         * Sends bytes of a direct buffer. Called by the thread that has the right to write. Never blocks.
         *
         * @return number of bytes that the socket has taken; 0 if it takes none at the moment
         * @throws IOException if the socket has failed
         */
        int send(ByteBuffer bytes, int from, int end) throws IOException;
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
     * Returns the registration of a socket that other threads can read and write in addition to the event loop. This
     * requires epoll. It also requires that the handler {@code connection} is the first one in the channel's pipeline,
     * so that no other handler, such as TLS, comes before it. Called on the event loop only.
     *
     * @param connection the channel's handler that reads and writes the bytes of the socket
     * @return null if only the event loop can use the socket, or if the socket is not registered
     */
    static @Nullable Registration ofPlainSocket(Channel channel, ChannelHandler connection) {
        CloseWatch watch = Thread.currentThread() instanceof LoopThread loop ? loop.watch : null;
        Registration found = watch != null
                        && channel instanceof EpollSocketChannel epoll
                        && channel.pipeline().first() == connection
                ? watch.registrations.get(epoll.fd())
                : null;
        return found == null || found.socket == null ? null : found;
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
     * Registration of one socket at epoll. It stands between epoll and the socket's channel, and passes the method
     * calls of each to the other. Only Netty's epoll handler calls {@code close}. Used on the event loop only, with two
     * exceptions: the thread that has the right to write calls {@link #send}, and the thread that has the right to read
     * calls {@link #receive}.
     */
    @SuppressWarnings("try")
    final class Registration implements IoRegistration, EpollIoHandle, DirectSocket {
        private static final EpollIoOps READING = EpollIoOps.EPOLLIN.with(EpollIoOps.EPOLLRDHUP);

        private final EpollIoHandle channel;

        /** Socket of {@link #send} and {@link #receive}; null if the channel's file descriptor is no {@code Socket}. */
        private final @Nullable Socket socket;

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
            this.socket = channel.fd() instanceof Socket found ? found : null;
        }

        private Socket socket() {
            return Objects.requireNonNull(socket);
        }

        @Override
        public int send(ByteBuffer bytes, int from, int end) throws IOException {
            return socket().send(bytes, from, end);
        }

        /**
         * Receives bytes into a direct buffer. Called by the thread that has the right to read. Never blocks.
         *
         * @return number of bytes that have been received; 0 if there are none at the moment; negative if the peer has
         *     ended its direction
         * @throws IOException if the socket has failed
         */
        int receive(ByteBuffer into, int from, int end) throws IOException {
            return socket().recv(into, from, end);
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
            // The users are notified while the socket is still open, and wait for the other threads. Tested by
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

    /**
     * Lets a caller's thread wait until a socket has something to read, by an epoll handler for this socket alone. The
     * socket has to be lent to callers, so that the event loop does not read it.
     */
    static final class ReadWait implements EpollIoHandle, IoHandlerContext, ThreadAwareExecutor {
        private final Socket socket;
        private final BooleanSupplier mayWait;
        private final IoHandler epoll;

        /**
         * Time at which {@link #await} stops waiting, by {@code System.nanoTime()}. Only the thread that has the right
         * to read uses this field.
         */
        private long untilNanos;

        /**
         * Whether the socket has something to read; false until the wait in {@link #await} has found that. Only the
         * caller's thread that has the right to read uses this field.
         */
        private boolean readable;

        /**
         * Thread that waits at the socket; null if none waits. Only the thread that has the right to read changes this
         * field. The event loop reads it when it wakes the thread.
         */
        private volatile @Nullable Thread reader;

        /**
         * Opens the epoll handler, and registers the socket of {@code at} there.
         *
         * @param mayWait returns false if the waiting thread has to return; the waiting thread asks before it blocks
         * @throws Exception if the epoll handler cannot be opened, for example for lack of a file descriptor
         */
        ReadWait(Registration at, BooleanSupplier mayWait) throws Exception {
            this.socket = at.socket();
            this.mayWait = mayWait;
            epoll = EpollIoHandler.newFactory(4, DefaultSelectStrategyFactory.INSTANCE)
                    .newHandler(this);
            try {
                epoll.initialize();
                epoll.register(this).submit(EpollIoOps.EPOLLIN);
            } catch (Exception | Error e) {
                epoll.destroy();
                throw e;
            }
        }

        /**
         * Waits on the calling thread until the socket has something to read. Also returns when {@code maxNanos} are
         * over, after {@link #wake}, and at once if {@code mayWait} returns false.
         *
         * @return whether the socket has something to read
         */
        boolean await(long maxNanos) {
            readable = false;
            untilNanos = System.nanoTime() + maxNanos;
            reader = Thread.currentThread();
            epoll.run(this);
            reader = null;
            return readable;
        }

        /**
         * Makes {@link #await} return. Before this call, {@code mayWait} must begin to return false: this method does
         * not wake a thread that is only about to block, but such a thread asks {@code mayWait} first. Thread-safe.
         */
        void wake() {
            epoll.wakeup();
        }

        /**
         * Ends the epoll handler. Must be called only when no thread is in {@link #await} and none will call it again.
         */
        void end() {
            epoll.prepareToDestroy();
            epoll.destroy();
        }

        @Override
        public FileDescriptor fd() {
            return socket;
        }

        @Override
        public void handle(IoRegistration registration, IoEvent event) {
            readable = true;
        }

        @Override
        public void close() {
            // nothing is closed here, because the channel closes the socket
        }

        @Override
        public boolean canBlock() {
            return mayWait.getAsBoolean();
        }

        @Override
        public long delayNanos(long now) {
            return Math.max(0, untilNanos - now);
        }

        @Override
        public long deadlineNanos() {
            return untilNanos;
        }

        @Override
        public boolean isExecutorThread(Thread thread) {
            return thread == reader;
        }

        @Override
        public void execute(Runnable task) {
            task.run();
        }
    }
}
