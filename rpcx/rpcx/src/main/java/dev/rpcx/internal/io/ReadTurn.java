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
 * Turn to read from a connection's socket. The event loop has it, or the thread of a caller that waits for its reply
 * and is alone on the connection. If the event loop reads, the socket wakes the loop, which then wakes the caller. A
 * caller that reads is woken by the socket itself, and the event loop sleeps.
 *
 * <p>The event loop lends the socket after {@code LONE_REPLIES} consecutive replies to lone callers, and takes it back
 * for whatever a lone caller does not do: a second call, a deadline, the end of the connection. A caller takes nothing
 * but its own whole reply; everything else that it reads goes to the event loop, together with the turn. So how calls
 * end is still decided by one thread at a time: the thread that has the turn. While the socket is lent and no call is
 * in flight, nobody reads; the event loop looks after the socket every {@link #TICK_MILLIS}.
 */
public final class ReadTurn implements CloseWatch.SocketUser {
    /** The connection whose socket is lent. It is the first handler of its channel. */
    public interface Connection extends ChannelHandler {
        /** Number of calls in flight, as of a moment ago. From any thread. */
        int load();

        /** Runs a task on the event loop, or on the calling thread if the event loop has ended. From any thread. */
        void inLoopOrHere(Runnable task);

        /**
         * Called when the event loop has the socket back: consecutive replies to lone callers are counted anew. On the
         * event loop.
         */
        void isNotAlone();

        /** Counts a sign of life: a caller has read something from the peer. On the event loop. */
        void recordActivity();

        /** Ends the connection at once. On the event loop. */
        void abort(String why);
    }

    /** A call whose caller reads the reply itself. */
    public interface Reader {
        /** Whether the call has ended and its outcome can be read. From any thread. */
        boolean isCompleted();

        /**
         * Completes the call if {@code arrived} begins with the whole reply to it, and reads that reply to its end and
         * no further. Called by the caller, which has the turn.
         *
         * @param arrived begins where a message of the peer begins
         * @return false if all bytes are for the event loop; the indices of {@code arrived} mean nothing then
         */
        boolean tryComplete(ByteBuf arrived);
    }

    /** Number of consecutive replies to lone callers after which the socket is lent to them. */
    public static final int LONE_REPLIES = 32;

    /** Most bytes that a caller reads at once; a larger reply is left to the event loop. */
    public static final int MAX_BYTES = 4 * 1024;

    /**
     * Longest wait of a caller at the socket, which it then leaves to the event loop. Before that it does not notice an
     * interrupt. The value is above Netty's {@code epollWaitThreshold} of 10 ms, up to which a timer would be set for
     * each call.
     */
    private static final long PATIENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(16);

    private static final long TICK_MILLIS = 5;

    private static final int LOOP = 0;

    /** The socket is lent: the event loop does not look at it, and a caller may take it. */
    private static final int FREE = 1;

    private static final int CALLER = 2;

    /** A caller has read bytes that are not for it: the event loop takes over. */
    private static final int LEFT_TO_LOOP = 3;

    private static final int ENDED = 4;

    /** A caller failed, and the bytes that it had read are lost: the event loop ends the connection. */
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

    /**
     * True if the event loop has found a caller at the socket and wants the socket back. Cleared when the loop has it.
     */
    private volatile boolean wanted;

    /** Set up when the socket is lent for the first time; null before. */
    private @Nullable Loan loan;

    /** True if {@code loan} could not be set up, or the socket closes: the event loop then reads for good. */
    private boolean lendingDisabled;

    // written only by the thread that has the turn
    private int taken;
    private @Nullable ByteBuf rest;

    // event loop only
    private int seen;
    private boolean ticking;

    public ReadTurn(Channel channel, Connection connection) {
        this.channel = channel;
        this.connection = connection;
    }

    /** What a caller needs to read: an epoll instance with one descriptor to wait on, and buffers for the bytes. */
    private static final class Loan implements EpollIoHandle, IoHandlerContext, ThreadAwareExecutor {
        final CloseWatch.Registration loop;
        final Socket socket;
        final ByteBuffer arrived = ByteBuffer.allocateDirect(MAX_BYTES);
        final ByteBuf frames = Unpooled.buffer(MAX_BYTES, MAX_BYTES);
        private final ReadTurn turn;
        private final IoHandler epoll;

        // used only by the thread that has the turn
        private long untilNanos;
        private boolean readable;
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
         * Waits at the socket.
         *
         * @return whether there is something to read; if not, the event loop wants the socket, or the wait took too
         *     long
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

    // ---- a caller

    /**
     * Waits for the reply to a call that this thread has sent itself. When this method returns, the call is over or the
     * event loop has to end it.
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
                // the call is looked at after the exchange: the event loop may have read the reply, and lent the socket
                // after that
                isOver = call.isCompleted() || lent.await() && take(lent, call);
            } catch (IOException broken) {
                // the event loop meets the same error when it reads, and ends the connection
            }
            after = rest != null ? LEFT_TO_LOOP : FREE;
        } finally {
            // only stores: at the end of the stack no method can be called
            taken++;
            owner = after;
        }
        // looked at after the turn has been given up: either this thread sees another call, or the sender of that call
        // finds the turn free
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
     * Has the event loop read if the socket is lent and nobody reads. From any thread that has sent a call itself and
     * does not read.
     */
    public void leaveToLoop() {
        if (owner == FREE) {
            connection.inLoopOrHere(this::takeOver);
        }
    }

    // ---- the event loop

    /** Lends the socket after a lone caller has been answered, so that the next caller reads its reply itself. */
    public void lend() {
        if (owner != LOOP || !isSetUp()) {
            return;
        }
        Objects.requireNonNull(loan).loop.pause(this);
        wanted = false;
        owner = FREE;
        // a call that was sent before the socket was lent waits for the event loop
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
            // there is no descriptor or no memory left: the event loop reads as before
            lendingDisabled = true;
        }
        return loan != null;
    }

    /**
     * Takes the turn for the event loop.
     *
     * @return whether the event loop reads now; if not, a caller is at the socket and has been asked to leave it, or a
     *     task of the loop takes over from a caller or ends the connection
     */
    public boolean takeForLoop() {
        int now = owner;
        if (now == LOOP || now == ENDED) {
            return true;
        }
        if (now == BROKEN) {
            // not at once: the code that calls this method is using the connection
            connection.inLoopOrHere(this::breakOff);
            return false;
        }
        if (!OWNER.compareAndSet(this, FREE, LOOP)) {
            wanted = true;
            Objects.requireNonNull(loan).wake();
            // tried once more: the caller may have given the socket back before it could see that it is wanted
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

    /**
     * Ends the connection because the position in the stream is lost, for example when there was no memory for what had
     * been read.
     */
    private void breakOff() {
        connection.abort("a caller failed while it read its reply");
    }

    /** Takes the socket over from a caller that does not go on, or that could not say so. */
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
        } else if (taken != seen) {
            seen = taken;
            connection.recordActivity();
            tickLater();
        } else if (now == CALLER) {
            tickLater();
        } else {
            // nobody has called since the last tick: what the server sends unasked is for the event loop
            takeForLoop();
        }
    }

    /**
     * Ends reading by callers: when this method returns, no caller is at the socket, and none comes later. It waits for
     * a caller that has been woken and never blocks after that.
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

    /** Does what {@link #end} does, and has the event loop read what still arrives. On the event loop. */
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
