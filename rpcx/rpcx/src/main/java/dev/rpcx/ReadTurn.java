package dev.rpcx;

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
 * Whose turn it is to read a connection's socket: the event loop's, or that of a caller who waits for its reply and is alone on the
 * connection. Where the loop reads, it is woken, and then wakes the caller; a caller that reads is woken by the socket, and the loop sleeps.
 *
 * <p>The loop lends the socket out after a row of calls that were alone, and takes it back for whatever a lone caller does not do: a second
 * call, a deadline, the connection's end. A caller takes nothing but its own whole reply; all else that it reads goes to the loop, and the
 * turn with it. Outcomes are still decided by one thread at a time: whoever has the turn. Nobody reads while the socket is lent and no
 * call is under way; the loop looks after it every {@link #TICK_MILLIS}.
 */
final class ReadTurn implements CloseWatch.SocketUser {
    /** The connection whose socket is lent out: the first of its channel's handlers. */
    interface Connection extends ChannelHandler {
        /** Calls under way, as of a moment ago. From any thread. */
        int load();

        /** Runs a task on the event loop; when that has ended, here. From any thread. */
        void inLoopOrHere(Runnable task);

        /** The loop has the socket back, and a row of replies to lone callers begins anew. On the event loop. */
        void isNotAlone();

        /** A caller has heard of the peer. On the event loop. */
        void hear();

        /** Ends the connection here and now. On the event loop. */
        void abort(String why);
    }

    /** A call whose caller reads the reply itself. */
    interface Reader {
        /** Whether its end is there to be read. From any thread. */
        boolean isCompleted();

        /**
         * Completes the call if what has arrived begins with its whole reply, and reads that to its end and no further.
         * By the caller, who has the turn.
         *
         * @param arrived begins where a message of the peer begins
         * @return false if all of it is for the event loop; its indices mean nothing then
         */
        boolean takes(ByteBuf arrived);
    }

    /** Replies in a row to callers that were alone, after which the socket is lent to them. */
    static final int LONE_REPLIES = 32;

    /** A reply above this is for the loop to read. */
    static final int MAX_BYTES = 4 * 1024;

    /**
     * A caller waits no longer at the socket, and then leaves it to the loop: it does not notice an interrupt before. Above Netty's
     * {@code epollWaitThreshold} of 10 ms, up to which a timer would be set for each call.
     */
    private static final long PATIENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(16);

    private static final long TICK_MILLIS = 5;

    private static final int LOOP = 0;

    /** Lent out: the loop does not look at the socket, and a caller may take it. */
    private static final int FREE = 1;

    private static final int CALLER = 2;

    /** A caller has read what is not for it: the loop takes over. */
    private static final int LEFT_TO_LOOP = 3;

    private static final int ENDED = 4;

    /** A caller failed, and what it had read is lost: the loop ends the connection. */
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

    /** The loop found a caller at the socket, and wants it back. Cleared when it has it. */
    private volatile boolean wanted;

    /** Set up when the socket is lent for the first time; null before. */
    private @Nullable Loan loan;

    /** It could not be set up: the loop reads for good. */
    private boolean refused;

    // of whoever has the turn
    private int taken;
    private @Nullable ByteBuf rest;

    // the loop's alone
    private int seen;
    private boolean ticking;

    ReadTurn(Channel channel, Connection connection) {
        this.channel = channel;
        this.connection = connection;
    }

    /** What a caller reads with: a list of one descriptor to wait on, and where the bytes go. */
    private static final class Loan implements EpollIoHandle, IoHandlerContext, ThreadAwareExecutor {
        final CloseWatch.Registration loop;
        final Socket socket;
        final ByteBuffer arrived = ByteBuffer.allocateDirect(MAX_BYTES);
        final ByteBuf frames = Unpooled.buffer(MAX_BYTES, MAX_BYTES);
        private final ReadTurn turn;
        private final IoHandler epoll;

        // of whoever has the turn
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

        /** @return whether there is something to read; otherwise the loop wants the socket, or it took too long */
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
            // the socket is the channel's
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

    boolean isLent() {
        int now = owner;
        return now == FREE || now == CALLER;
    }

    // ---- a caller

    /** Waits for the reply to a call that this thread has sent itself. When it returns, the call is over or the loop's to end. */
    void read(Reader call) {
        if (owner != FREE || !OWNER.compareAndSet(this, FREE, CALLER)) {
            return;
        }
        boolean isOver = false;
        int after = BROKEN;
        try {
            Loan lent = Objects.requireNonNull(loan);
            try {
                // behind the exchange: the loop may have read the reply, and lent the socket after that
                isOver = call.isCompleted() || lent.await() && take(lent, call);
            } catch (IOException broken) {
                // the loop's own attempt tells it the same, and ends the connection
            }
            after = rest != null ? LEFT_TO_LOOP : FREE;
        } finally {
            // by stores: where the stack is at its end nothing can be called
            taken++;
            owner = after;
        }
        // after the turn: either this sees the other call, or whoever sends it finds the turn free
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
        boolean isOver = call.takes(frames);
        frames.setIndex(isOver ? frames.readerIndex() : 0, bytes);
        if (frames.isReadable()) {
            rest = Unpooled.copiedBuffer(frames);
        }
        return isOver;
    }

    /** Nobody may be reading: sees to it that the loop does. From any thread that has sent a call itself and does not read. */
    void leaveToLoop() {
        if (owner == FREE) {
            connection.inLoopOrHere(this::takeOver);
        }
    }

    // ---- the event loop

    /** The caller who has just been answered was alone: lets the next one read itself. */
    void lend() {
        if (owner != LOOP || !isSetUp()) {
            return;
        }
        Objects.requireNonNull(loan).loop.pause(this);
        wanted = false;
        owner = FREE;
        // a call that was sent before the socket was free waits for the loop
        if (connection.load() > 0 && owner == FREE) {
            takeForLoop();
        } else if (!ticking) {
            tickLater();
        }
    }

    private boolean isSetUp() {
        if (loan != null || refused) {
            return loan != null;
        }
        CloseWatch.Registration registration = CloseWatch.ofPlainSocket(channel, connection);
        if (registration == null || !(registration.fd() instanceof Socket socket)) {
            refused = true;
            return false;
        }
        try {
            loan = new Loan(this, registration, socket);
            registration.reading = this;
        } catch (Exception | OutOfMemoryError none) {
            // no descriptor or no memory left: the loop goes on as before
            refused = true;
        }
        return loan != null;
    }

    /** @return whether the loop reads now; otherwise a caller is at the socket, which has been told to leave it */
    boolean takeForLoop() {
        int now = owner;
        if (now == LOOP || now == ENDED) {
            return true;
        }
        if (now == BROKEN) {
            // not here: whoever asks has the connection in hand
            connection.inLoopOrHere(this::breakOff);
            return false;
        }
        if (!OWNER.compareAndSet(this, FREE, LOOP)) {
            wanted = true;
            Objects.requireNonNull(loan).wake();
            // once more: whoever had it may have given it back before he could see that it is wanted
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

    /** The place in the stream is lost, such as where there was no memory for what had been read. */
    private void breakOff() {
        connection.abort("a caller failed while it read its reply");
    }

    /** From a caller that does not go on; or for one that could not say so. */
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
            connection.hear();
            tickLater();
        } else if (now == CALLER) {
            tickLater();
        } else {
            // nobody calls: what the server says by itself is for the loop
            takeForLoop();
        }
    }

    /** No caller is at the socket when this returns, and none comes after. Waits for one that has been woken, and never blocks then. */
    void end() {
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

    /** Ends as {@link #end} does, and has the loop read what still arrives. On the event loop. */
    void endToLoop() {
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
        refused = true;
        if (lent != null) {
            lent.end();
        }
    }
}
