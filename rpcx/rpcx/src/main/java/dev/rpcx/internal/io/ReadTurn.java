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
 * Decides who reads from a connection's socket: the event loop, or a thread that waits for its reply and has the only
 * call on the connection. That thread saves a wake-up, since it reads its reply itself instead of being woken by the
 * event loop.
 *
 * <p>The event loop lends the socket after {@code LONE_REPLIES} consecutive replies to lone callers. It takes the
 * socket back for everything else: a second call, a deadline, the end of the connection. A caller handles only its own
 * reply, if it is complete. All other bytes go to the event loop, together with the turn. So only the thread that has
 * the turn decides how calls end. While the socket is lent and no call is in flight, nobody reads. So the event loop
 * checks every {@link #TICK_MILLIS} (5 ms) whether a caller has had the turn, and takes the socket back if none has.
 */
public final class ReadTurn implements CloseWatch.SocketUser {
    /** The connection whose socket is lent. It is the first handler of its channel. */
    public interface Connection extends ChannelHandler {
        /** Returns the number of calls in flight, which may be slightly out of date. Thread-safe. */
        int load();

        /** Runs a task on the event loop, or on the calling thread if the event loop has ended. Thread-safe. */
        void inLoopOrHere(Runnable task);

        /**
         * Called on the event loop when it has the socket back: from then on, consecutive replies to lone callers are
         * counted from 0 again.
         */
        void isNotAlone();

        /** Records a sign of life: a caller has read something from the peer. Event loop only. */
        void recordActivity();

        /** Ends the connection immediately. Event loop only. */
        void abort(String why);
    }

    /** A call whose caller reads the reply itself. */
    public interface Reader {
        /** Whether the call has ended and its outcome can be read. Thread-safe. */
        boolean isCompleted();

        /**
         * Completes the call if {@code arrived} begins with the complete reply. Reads the reply and nothing after it.
         * Called by the caller's thread, which has the turn.
         *
         * @param arrived buffer that begins at the beginning of a message
         * @return false if all bytes are for the event loop; then the indices of {@code arrived} are undefined
         */
        boolean tryComplete(ByteBuf arrived);
    }

    /** Number of consecutive replies to lone callers after which the socket is lent to them. */
    public static final int LONE_REPLIES = 32;

    /** Largest number of bytes that a caller reads at a time. The event loop reads a larger reply. */
    public static final int MAX_BYTES = 4 * 1024;

    /**
     * Longest time that a caller waits at the socket: 16 ms, during which it does not notice an interrupt. Then it
     * leaves the socket to the event loop. The value is above Netty's {@code epollWaitThreshold} of 10 ms: for a
     * shorter wait, Netty would set a timer for each call.
     */
    private static final long PATIENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(16);

    private static final long TICK_MILLIS = 5;

    private static final int LOOP = 0;

    /** The socket is lent: the event loop does not read from it, and a caller may take the turn. */
    private static final int FREE = 1;

    private static final int CALLER = 2;

    /** A caller has read bytes that are not for it: the event loop has to take over. */
    private static final int LEFT_TO_LOOP = 3;

    private static final int ENDED = 4;

    /** A caller failed, and the bytes that it had read are lost: the event loop has to end the connection. */
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
     * What a caller needs to read. Null until the socket is lent for the first time, and after the socket has closed.
     */
    private @Nullable Loan loan;

    /** True if {@code loan} could not be created, or if the socket closes: then only the event loop reads. */
    private boolean lendingDisabled;

    /** Number of times that a caller has had the turn. Written only by the thread that has the turn. */
    private int callerTurns;

    /**
     * Bytes that a caller has read for the event loop; null if there are none. Written only by the thread that has the
     * turn.
     */
    private @Nullable ByteBuf rest;

    /** Value of {@code callerTurns} at the last run of {@code tick}. Event loop only. */
    private int seen;

    /** True while a run of {@code tick} is scheduled. Event loop only. */
    private boolean ticking;

    public ReadTurn(Channel channel, Connection connection) {
        this.channel = channel;
        this.connection = connection;
    }

    /** What a caller needs to read: an epoll instance for the socket, and buffers. */
    private static final class Loan implements EpollIoHandle, IoHandlerContext, ThreadAwareExecutor {
        final CloseWatch.Registration loop;
        final Socket socket;
        final ByteBuffer arrived = ByteBuffer.allocateDirect(MAX_BYTES);
        final ByteBuf frames = Unpooled.buffer(MAX_BYTES, MAX_BYTES);
        private final ReadTurn turn;
        private final IoHandler epoll;

        /** End of the present wait, by {@code System.nanoTime()}. Used only by the thread that has the turn. */
        private long untilNanos;

        /** True if the present wait has found something to read. Used only by the thread that has the turn. */
        private boolean readable;

        /** Thread that waits at the socket; null if none waits. Written only by the thread that has the turn. */
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
         * Waits at the socket until there is something to read.
         *
         * @return false if the event loop wants the socket, or if the wait took too long
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
     * Makes the event loop read if the socket is lent and nobody reads. Called by a thread that has sent a call and
     * does not read the reply itself. Thread-safe.
     */
    public void leaveToLoop() {
        if (owner == FREE) {
            connection.inLoopOrHere(this::takeOver);
        }
    }

    // ---- methods that the event loop uses

    /** Lends the socket after a lone caller has been answered, so that the next caller reads its reply itself. */
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
     * Takes the turn for the event loop.
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

    /** Ends the connection because bytes have been lost, for example for lack of memory. */
    private void breakOff() {
        connection.abort("a caller failed while it read its reply");
    }

    /**
     * Takes the socket over from a caller that no longer reads, or that has failed. Bytes that the caller has read for
     * the event loop go to the handlers of the channel.
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
     * Ends reading by callers. Wakes a caller that waits at the socket, and waits until the caller has left; a caller
     * that has been woken never blocks. After this method has returned, no caller uses the socket.
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
