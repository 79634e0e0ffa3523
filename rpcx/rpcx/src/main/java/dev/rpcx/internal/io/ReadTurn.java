package dev.rpcx.internal.io;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.DefaultSelectStrategyFactory;
import io.netty.channel.IoEvent;
import io.netty.channel.IoHandler;
import io.netty.channel.IoHandlerContext;
import io.netty.channel.IoRegistration;
import io.netty.channel.epoll.EpollIoHandle;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollIoOps;
import io.netty.channel.unix.FileDescriptor;
import io.netty.channel.unix.Socket;
import io.netty.util.concurrent.ThreadAwareExecutor;
import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Decides which thread reads from a connection's socket: the event loop, or a lone caller. A caller is lone if its call
 * is the only one on the connection. If it reads its reply itself, nobody has to wake it, which saves time. Whoever may
 * read has the turn.
 *
 * <p>The event loop lends the socket to callers after {@link #LONE_REPLIES} consecutive replies to lone callers. It
 * takes the socket back for everything else: a second call, a deadline, the end of the connection. A caller handles
 * only its own reply, and only if the reply is complete. All other bytes go to the event loop, together with the turn.
 * So only the thread that has the turn decides how calls end.
 *
 * <p>While the socket is lent and no call is in flight, nobody reads. So the event loop checks every
 * {@link #TICK_MILLIS} (5 ms) whether a caller has had the turn, and takes the socket back if none has.
 */
public final class ReadTurn implements CloseWatch.SocketUser {
    /** The connection whose socket is lent to callers. It is the first handler of its channel. */
    public interface Connection extends ChannelHandler {
        /** Returns the number of calls in flight. The number may be slightly out of date. Thread-safe. */
        int load();

        /** Runs a task on the event loop, or on the calling thread if the event loop has ended. Thread-safe. */
        void inLoopOrHere(Runnable task);

        /**
         * Called on the event loop when it has taken the socket back from callers. The connection then counts
         * consecutive replies to lone callers from 0 again.
         */
        void isNotAlone();

        /** Records that the peer is alive, since a caller has read something from it. Event loop only. */
        void recordActivity();

        /** Ends the connection immediately. Event loop only. */
        void abort(String why);
    }

    /** A call whose caller may read the reply itself. */
    public interface Reader {
        /** Whether the call has ended, so that its outcome can be read. Thread-safe. */
        boolean isCompleted();

        /**
         * Completes the call if {@code arrived} begins with its complete reply. Reads the reply and nothing behind it.
         * Called by the caller's thread, which has the turn.
         *
         * @param arrived bytes from the socket, which begin with the beginning of a message
         * @return false if the event loop has to handle all the bytes; then the indices of {@code arrived} are
         *     undefined
         */
        boolean tryComplete(ByteBuf arrived);
    }

    /**
     * The socket is lent to callers after this many consecutive replies to callers that were alone on their connection.
     */
    public static final int LONE_REPLIES = 32;

    /**
     * Largest number of bytes that a caller reads from the socket at a time. A larger reply is read by the event loop.
     */
    public static final int MAX_BYTES = 4 * 1024;

    /**
     * Longest time that a caller waits at the socket for its reply: 16 ms. It does not notice an interrupt meanwhile.
     * Afterwards it leaves the socket to the event loop. The value is above Netty's {@code epollWaitThreshold} of 10
     * ms: for a shorter wait, Netty would set a timer for each call.
     */
    private static final long PATIENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(16);

    private static final long TICK_MILLIS = 5;

    private static final int LOOP = 0;

    /**
     * State while the socket is lent and no caller uses it. The event loop does not read, and a caller may take the
     * turn.
     */
    private static final int FREE = 1;

    private static final int CALLER = 2;

    /**
     * State after a caller has read bytes that are not for it. The event loop has to handle them, and reads from then
     * on.
     */
    private static final int LEFT_TO_LOOP = 3;

    private static final int ENDED = 4;

    /**
     * State after a caller has failed and the bytes that it had read are lost. The event loop has to end the
     * connection.
     */
    private static final int BROKEN = 5;

    private static final VarHandle OWNER;

    static {
        try {
            OWNER = MethodHandles.lookup().findVarHandle(ReadTurn.class, "owner", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final Channel channel;
    private final Connection connection;
    private volatile int owner = LOOP;

    /** True if the event loop wants the socket back from a caller. Cleared when the loop has the socket. */
    private volatile boolean wanted;

    /**
     * What a caller needs to read from the socket. Null until the socket is lent for the first time, and once it has
     * closed.
     */
    private @Nullable Loan loan;

    /**
     * True if the socket is never lent again, so that only the event loop reads. The reason is that {@code loan} could
     * not be created, or that the socket closes.
     */
    private boolean lendingDisabled;

    /** Number of times that a caller has had the turn. Written only by the thread that has the turn. */
    private int callerTurns;

    /**
     * Bytes that a caller has read and the event loop has to handle; null if there are none. Written only by the thread
     * that has the turn.
     */
    private @Nullable ByteBuf rest;

    /** Value of {@code callerTurns} when {@code tick} last found that it had changed. Event loop only. */
    private int seen;

    /** True while the next check by {@code tick} is scheduled. Event loop only. */
    private boolean ticking;

    public ReadTurn(Channel channel, Connection connection) {
        this.channel = channel;
        this.connection = connection;
    }

    /** What a caller needs to read from the socket: an epoll instance for the socket, and buffers. */
    private static final class Loan implements EpollIoHandle, IoHandlerContext, ThreadAwareExecutor {
        final CloseWatch.Registration loop;
        final Socket socket;
        final ByteBuffer arrived = ByteBuffer.allocateDirect(MAX_BYTES);
        final ByteBuf frames = Unpooled.buffer(MAX_BYTES, MAX_BYTES);
        private final ReadTurn turn;
        private final IoHandler epoll;

        /**
         * Time at which the caller's present wait ends, by {@code System.nanoTime()}. Used only by the thread that has
         * the turn.
         */
        private long untilNanos;

        /** True if the caller's present wait has found something to read. Used only by the thread that has the turn. */
        private boolean readable;

        /**
         * Thread of the caller that waits at the socket; null if none waits. Written only by the thread that has the
         * turn.
         */
        private volatile @Nullable Thread reader;

        Loan(ReadTurn turn, CloseWatch.Registration loop, Socket socket) throws Exception {
            this.turn = turn;
            this.loop = loop;
            this.socket = socket;
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
         * Waits until the socket has something to read, on the thread of a caller.
         *
         * @return false if the event loop wants the socket back, or if the wait took too long
         */
        boolean await() {
            readable = false;
            untilNanos = System.nanoTime() + PATIENCE_NANOS;
            reader = Thread.currentThread();
            epoll.run(this);
            reader = null;
            return readable;
        }

        void wake() {
            epoll.wakeup();
        }

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
            // the socket belongs to the channel, which closes it
        }

        @Override
        public boolean canBlock() {
            return !turn.wanted;
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

    public boolean isLent() {
        int now = owner;
        return now == FREE || now == CALLER;
    }

    // ---- methods that callers use

    /**
     * Waits for the reply to a call of this thread, and reads it, if the turn is free. When this method returns, either
     * the call has ended, or the event loop has to end it.
     */
    public void read(Reader call) {
        if (owner != FREE || !OWNER.compareAndSet(this, FREE, CALLER)) {
            return;
        }
        boolean isOver = false;
        int after = BROKEN;
        try {
            Loan lent = Objects.requireNonNull(loan);
            try {
                // checked only after the turn has been taken: before that, the event loop may have read the reply and
                // lent the socket again
                isOver = call.isCompleted() || lent.await() && take(lent, call);
            } catch (IOException broken) {
                // the event loop gets the same error when it reads, and ends the connection
            }
            after = rest != null ? LEFT_TO_LOOP : FREE;
        } finally {
            // these are only stores, since no method can be called if the stack is exhausted
            callerTurns++;
            owner = after;
        }
        // the load is checked only after the turn has been given up: so either this thread sees another call, or the
        // sender of that call finds the turn free
        if (after != FREE || !isOver || wanted || connection.load() > 0) {
            connection.inLoopOrHere(this::takeOver);
        }
    }

    private boolean take(Loan lent, Reader call) throws IOException {
        int bytes = lent.socket.recv(lent.arrived, 0, MAX_BYTES);
        if (bytes <= 0) {
            return false;
        }
        ByteBuf frames = lent.frames;
        frames.clear();
        lent.arrived.position(0).limit(bytes);
        frames.writeBytes(lent.arrived);
        lent.arrived.clear();
        boolean isOver = call.tryComplete(frames);
        frames.setIndex(isOver ? frames.readerIndex() : 0, bytes);
        if (frames.isReadable()) {
            rest = Unpooled.copiedBuffer(frames);
        }
        return isOver;
    }

    /**
     * Makes the event loop read if the socket is lent to callers and none reads. Called by a thread that has sent a
     * call and does not read the reply itself. Thread-safe.
     */
    public void leaveToLoop() {
        if (owner == FREE) {
            connection.inLoopOrHere(this::takeOver);
        }
    }

    // ---- methods that the event loop uses

    /**
     * Lends the socket to callers, so that the next lone caller reads its reply itself. Called after a lone caller has
     * been answered.
     */
    public void lend() {
        if (owner != LOOP || !isSetUp()) {
            return;
        }
        Objects.requireNonNull(loan).loop.pause(this);
        wanted = false;
        owner = FREE;
        // a call that was sent before the socket was lent waits for the event loop to read
        if (connection.load() > 0 && owner == FREE) {
            takeForLoop();
        } else if (!ticking) {
            tickLater();
        }
    }

    private boolean isSetUp() {
        if (loan != null || lendingDisabled) {
            return loan != null;
        }
        CloseWatch.Registration registration = CloseWatch.ofPlainSocket(channel, connection);
        if (registration == null || !(registration.fd() instanceof Socket socket)) {
            lendingDisabled = true;
            return false;
        }
        try {
            loan = new Loan(this, registration, socket);
            registration.reading = this;
        } catch (Exception | OutOfMemoryError none) {
            // there is no free descriptor or no memory: the event loop reads as before
            lendingDisabled = true;
        }
        return loan != null;
    }

    /**
     * Takes the socket back from callers, so that the event loop reads.
     *
     * @return true if the event loop reads now. If false, a caller has been asked to leave the socket, or a task of the
     *     loop will take over from a caller or end the connection
     */
    public boolean takeForLoop() {
        int now = owner;
        if (now == LOOP || now == ENDED) {
            return true;
        }
        if (now == BROKEN) {
            // the caller of this method is using the connection, so a separate task ends the connection
            connection.inLoopOrHere(this::breakOff);
            return false;
        }
        if (!OWNER.compareAndSet(this, FREE, LOOP)) {
            wanted = true;
            Objects.requireNonNull(loan).wake();
            // tried again: the caller may have given the socket back before it could see that it is wanted
            if (!OWNER.compareAndSet(this, FREE, LOOP)) {
                return false;
            }
        }
        isBack();
        return true;
    }

    private void isBack() {
        wanted = false;
        connection.isNotAlone();
        Objects.requireNonNull(loan).loop.resume();
    }

    /** Ends the connection because bytes that a caller had read are lost, for example for lack of memory. */
    private void breakOff() {
        connection.abort("a caller failed while it read its reply");
    }

    /**
     * Takes the socket back from callers. If a caller has failed, ends the connection instead. Bytes that a caller has
     * read and that are not for it go to the handlers of the channel.
     */
    private void takeOver() {
        if (!OWNER.compareAndSet(this, LEFT_TO_LOOP, LOOP)) {
            takeForLoop();
            return;
        }
        ByteBuf bytes = Objects.requireNonNull(rest);
        rest = null;
        isBack();
        channel.pipeline().fireChannelRead(bytes).fireChannelReadComplete();
    }

    private void tickLater() {
        ticking = true;
        channel.eventLoop().schedule(this::tick, TICK_MILLIS, TimeUnit.MILLISECONDS);
    }

    private void tick() {
        ticking = false;
        int now = owner;
        if (now == LOOP || now == ENDED) {
            return;
        }
        VarHandle.acquireFence();
        if (now == LEFT_TO_LOOP || now == BROKEN) {
            takeOver();
        } else if (callerTurns != seen) {
            seen = callerTurns;
            connection.recordActivity();
            tickLater();
        } else if (now == CALLER) {
            tickLater();
        } else {
            // no caller has read since the last tick: the event loop has to read what the server sends unasked
            takeForLoop();
        }
    }

    /**
     * Ends reading by callers. Wakes a caller that waits at the socket, and waits until it has left; a caller that has
     * been woken never blocks. After this method has returned, no caller uses the socket.
     */
    public void end() {
        while (owner != ENDED) {
            if (OWNER.compareAndSet(this, LOOP, ENDED)
                    || OWNER.compareAndSet(this, FREE, ENDED)
                    || OWNER.compareAndSet(this, LEFT_TO_LOOP, ENDED)
                    || OWNER.compareAndSet(this, BROKEN, ENDED)) {
                break;
            }
            wanted = true;
            Loan lent = loan;
            if (lent != null) {
                lent.wake();
            }
            Thread.yield();
        }
    }

    /**
     * Ends reading by callers as {@link #end} does, and makes the event loop read what still arrives. Event loop only.
     */
    public void endToLoop() {
        end();
        Loan lent = loan;
        if (lent != null && lent.loop.isValid()) {
            lent.loop.resume();
        }
    }

    @Override
    public void socketCloses() {
        end();
        Loan lent = loan;
        loan = null;
        lendingDisabled = true;
        if (lent != null) {
            lent.end();
        }
    }
}
