package dev.rpcx.internal.io;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Decides which thread reads from a connection's socket: the event loop, or a lone caller. A caller is lone if its call
 * is the only one on the connection. The right to read is called the turn. A caller that reads its reply itself saves
 * time, because no other thread has to wake the caller.
 *
 * <p>The event loop lends the socket to callers after {@link #LONE_REPLIES} consecutive replies to lone callers. The
 * event loop takes the socket back for all other work, such as a second call, a deadline, or the end of the connection.
 * A caller handles only its own reply, and only if the reply is complete. All other bytes go to the event loop, which
 * gets the turn too. Thus only the thread that has the turn decides how calls end.
 *
 * <p>While the socket is lent and no call is in flight, no thread reads. Therefore the event loop checks every
 * {@link #TICK_MILLIS} (5 ms) whether a caller has the turn, or has had the turn since the last check. If not, the
 * event loop takes the socket back.
 */
public final class ReadTurn implements CloseWatch.SocketUser {
    /**
     * The connection whose socket can be lent to callers. The socket is never lent if another handler, such as TLS,
     * comes before this connection in its channel.
     */
    public interface Connection extends ChannelHandler {
        /** Returns the number of calls in flight. The number can be slightly out of date. Thread-safe. */
        int load();

        /** Runs a task on the event loop, or on the calling thread if the event loop has ended. Thread-safe. */
        void inLoopOrHere(Runnable task);

        /**
         * Resets to 0 the count of consecutive replies to callers that were alone on the connection. Called on the
         * event loop, after the event loop has taken the socket back from callers.
         */
        void isNotAlone();

        /** Records that the peer is alive, because a caller has read from the socket. Called only on the event loop. */
        void recordActivity();

        /** Ends the connection immediately. Called only on the event loop. */
        void abort(String why);
    }

    /** A call whose caller can read the reply from the socket itself. */
    public interface Reader {
        /** Returns whether the call has ended, so that the outcome of the call can be read. Thread-safe. */
        boolean isCompleted();

        /**
         * Completes the call if {@code arrived} begins with the complete reply to the call. Reads only the reply, and
         * no bytes behind the reply. Called on the caller's thread, while this thread has the right to read.
         *
         * @param arrived bytes from the socket; a message begins at the first byte
         * @return false if the event loop has to handle all the bytes; the indices of {@code arrived} are undefined in
         *     this case
         */
        boolean tryComplete(ByteBuf arrived);
    }

    /**
     * Number of consecutive replies to lone callers after which the socket is lent to callers. A caller is lone if its
     * call is the only one on the connection. A reply starts the count anew if the reply is larger than half of
     * {@link #MAX_BYTES}, or if the caller runs on a virtual thread.
     */
    public static final int LONE_REPLIES = 32;

    /**
     * Largest number of bytes that a caller's own thread reads from the socket at a time. If the reply is larger, the
     * event loop handles it.
     */
    public static final int MAX_BYTES = 4 * 1024;

    /**
     * Longest time, in nanoseconds, that a caller's own thread waits at the socket for the reply. Afterwards the event
     * loop reads the reply. During the wait, the caller does not notice an interrupt. The value is above Netty's
     * {@code epollWaitThreshold} of 10 ms, because Netty would set a timer for each shorter wait.
     */
    private static final long MAX_WAIT_NANOS = TimeUnit.MILLISECONDS.toNanos(16);

    private static final long TICK_MILLIS = 5;

    private static final int LOOP = 0;

    /**
     * State while the socket is lent to callers and no caller reads. The event loop does not read in this state, and a
     * caller can take the right to read.
     */
    private static final int FREE = 1;

    private static final int CALLER = 2;

    /**
     * State after a caller has read bytes that it cannot handle. The event loop has to handle these bytes, and reads
     * from then on.
     */
    private static final int HANDED_TO_LOOP = 3;

    private static final int ENDED = 4;

    /**
     * State after a caller has failed and may have lost bytes that it had read. The event loop has to end the
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

    /**
     * State of the right to read: one of the constants from {@code LOOP} to {@code BROKEN}. The event loop and the
     * threads of callers change it. If two threads had the right at the same time, each could read a part of a frame.
     * Tested by {@code ReadTurnTest.whatComesBesideALoneCallerIsAnsweredToo}.
     *
     * <p>A thread that gives up the right writes {@code owner} last. So the thread that takes the right next sees the
     * values that the first thread has left in {@code loan}, {@code callerTurns} and {@code rest}.
     */
    private volatile int owner = LOOP;

    /**
     * Whether the event loop has asked a caller to give the socket back. The event loop writes the field, and callers
     * read it. Cleared when the event loop has the socket.
     */
    private volatile boolean wanted;

    /**
     * Epoll instance and buffers with which callers read from the socket. This field is null before the socket is first
     * lent, and after the socket has closed.
     */
    private @Nullable Loan loan;

    /**
     * True if the event loop must not lend the socket to callers any more, so that only the event loop reads. The field
     * becomes true if {@code loan} cannot be created, and when the socket closes.
     */
    private boolean lendingDisabled;

    /**
     * Number of times that a caller has had the right to read. Only the thread that has this right changes the number.
     */
    private int callerTurns;

    /**
     * Bytes that a caller has read and the event loop has to handle; null if there are none. Only the thread that has
     * the right to read changes this field.
     */
    private @Nullable ByteBuf rest;

    /**
     * Value of {@code callerTurns}, the number of times that callers had the right to read, when {@link #tick} last
     * found that the number had changed. Used only on the event loop.
     */
    private int seen;

    /** Whether the next check by {@link #tick} is scheduled. Used only on the event loop. */
    private boolean ticking;

    public ReadTurn(Channel channel, Connection connection) {
        this.channel = channel;
        this.connection = connection;
    }

    /** Holds what callers need to read from one socket: the wait for bytes, and the buffers for the bytes. */
    private static final class Loan {
        final CloseWatch.Registration at;
        final CloseWatch.ReadWait arrival;
        final ByteBuffer arrived = ByteBuffer.allocateDirect(MAX_BYTES);
        final ByteBuf frames = Unpooled.buffer(MAX_BYTES, MAX_BYTES);

        Loan(ReadTurn turn, CloseWatch.Registration at) throws Exception {
            this.at = at;
            arrival = new CloseWatch.ReadWait(at, () -> !turn.wanted);
        }
    }

    public boolean isLent() {
        int now = owner;
        return now == FREE || now == CALLER;
    }

    // ---- methods that callers use

    /**
     * If the right to read is free, waits for the reply to a call of this thread, and reads the reply. Otherwise
     * returns at once. When this method returns, the call has ended, or the event loop has to end the call.
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
                // The call is checked after the right to read has been taken. Before this thread took the right, the
                // event loop can have read the reply to this call and lent the socket again. If the call were not
                // checked here, await() would wait for a second reply.
                isOver = call.isCompleted() || lent.arrival.await(MAX_WAIT_NANOS) && take(lent, call);
            } catch (IOException broken) {
                // The socket has failed. Below, this thread makes the event loop take the socket back. When the event
                // loop reads, it gets an error or the end of the stream, and ends the connection.
            }
            after = rest != null ? HANDED_TO_LOOP : FREE;
        } finally {
            // this block only assigns fields, because a method call would fail if the stack is exhausted
            callerTurns++;
            owner = after;
        }
        // load(), the number of calls in flight, is read only after the right to read has been given up. If another
        // caller has sent a call before, load() counts that call, and this thread makes the event loop read. A caller
        // that sends a call later finds the right to read free, and reads or makes the event loop read. In the other
        // order, the reply to a call that is sent in between would not be read before tick().
        if (after != FREE || !isOver || wanted || connection.load() > 0) {
            connection.inLoopOrHere(this::takeOver);
        }
    }

    private boolean take(Loan lent, Reader call) throws IOException {
        int bytes = lent.at.receive(lent.arrived, 0, MAX_BYTES);
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
     * Makes the event loop read, if the socket is lent to callers and no caller reads. Called by a thread that has sent
     * a call and does not read the reply. Thread-safe.
     */
    public void handToLoop() {
        if (owner == FREE) {
            connection.inLoopOrHere(this::takeOver);
        }
    }

    // ---- methods that the event loop uses

    /**
     * Lends the socket to callers, so that the next lone caller reads its reply itself. A caller is lone if its call is
     * the only one on the connection. Called after a lone caller has been answered.
     */
    public void lend() {
        if (owner != LOOP || !isSetUp()) {
            return;
        }
        Objects.requireNonNull(loan).at.pause(this);
        wanted = false;
        owner = FREE;
        // The caller of a call that was sent before the socket was lent may wait for the event loop to read. Therefore
        // the event loop takes the socket back if there is such a call. The check comes after the socket has been lent.
        // A thread that sends a call after the check finds the socket lent, and reads or makes the event loop read.
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
        if (registration == null) {
            lendingDisabled = true;
            return false;
        }
        try {
            loan = new Loan(this, registration);
            registration.reading = this;
        } catch (Exception | OutOfMemoryError none) {
            // the socket cannot be lent without a free file descriptor and memory, so the event loop reads as before
            lendingDisabled = true;
        }
        return loan != null;
    }

    /**
     * Takes the socket back from callers, so that the event loop reads.
     *
     * @return true if the event loop reads now, or if {@link #end} has ended reading by callers. False if the event
     *     loop will read later, because a caller still uses the socket or has handed bytes to the event loop. Also
     *     false if a caller has failed; the connection will then be ended
     */
    public boolean takeForLoop() {
        int now = owner;
        if (now == LOOP || now == ENDED) {
            return true;
        }
        if (now == BROKEN) {
            // the connection is ended by a separate task, because the code that called this method uses the connection
            connection.inLoopOrHere(this::breakOff);
            return false;
        }
        if (!OWNER.compareAndSet(this, FREE, LOOP)) {
            wanted = true;
            Objects.requireNonNull(loan).arrival.wake();
            // The event loop tries once more to take the socket. The caller can have given the socket back just before
            // wanted was set. Such a caller does not notify the event loop. A caller that gives the socket back later
            // reads wanted afterwards, finds that it is set, and notifies the event loop.
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
        Objects.requireNonNull(loan).at.resume();
    }

    /**
     * Ends the connection because a caller has failed and may have lost bytes that it had read. A caller can fail for
     * lack of memory.
     */
    private void breakOff() {
        connection.abort("a caller failed while it read its reply");
    }

    /**
     * Takes the socket back from callers, or ends the connection if a caller has failed. Bytes that a caller has read
     * but not handled are passed to the channel's handlers.
     */
    private void takeOver() {
        if (!OWNER.compareAndSet(this, HANDED_TO_LOOP, LOOP)) {
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
        // The event loop reads owner before callerTurns, because a caller changes callerTurns before it writes owner.
        // In the other order, the event loop could take the socket back although a caller has just read its reply. The
        // volatile read of owner ensures this order even without the fence.
        VarHandle.acquireFence();
        if (now == HANDED_TO_LOOP || now == BROKEN) {
            takeOver();
        } else if (callerTurns != seen) {
            seen = callerTurns;
            connection.recordActivity();
            tickLater();
        } else if (now == CALLER) {
            tickLater();
        } else {
            // No caller has read since the last check. The event loop has to read, because the server can send messages
            // that are not replies.
            takeForLoop();
        }
    }

    /**
     * Ends reading by callers. Wakes a caller that waits at the socket, and waits until the caller no longer uses the
     * socket. The wait is short, because a woken caller never blocks. After this method has returned, no caller uses
     * the socket. Tested by {@code ReadTurnAloneTest.theEndWaitsForACallerAtTheSocket}.
     */
    public void end() {
        while (owner != ENDED) {
            if (OWNER.compareAndSet(this, LOOP, ENDED)
                    || OWNER.compareAndSet(this, FREE, ENDED)
                    || OWNER.compareAndSet(this, HANDED_TO_LOOP, ENDED)
                    || OWNER.compareAndSet(this, BROKEN, ENDED)) {
                break;
            }
            wanted = true;
            Loan lent = loan;
            if (lent != null) {
                lent.arrival.wake();
            }
            Thread.yield();
        }
    }

    /**
     * Ends reading by callers as {@link #end} does, and makes the event loop read the bytes that still arrive. Called
     * only on the event loop.
     */
    public void endToLoop() {
        end();
        Loan lent = loan;
        if (lent != null && lent.at.isValid()) {
            lent.at.resume();
        }
    }

    @Override
    public void socketCloses() {
        end();
        Loan lent = loan;
        loan = null;
        lendingDisabled = true;
        if (lent != null) {
            lent.arrival.end();
        }
    }
}
