package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.unix.Socket;
import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Whose turn it is to write to a connection's socket: the event loop's, or that of a thread with a small message which found the connection
 * quiet. Handing a message to the loop costs a wake-up, some 10 µs; where nothing else is to be gathered with it, its thread writes it.
 *
 * <p>The loop never waits for its turn: refused, it leaves word, and the thread that has the turn wakes it. What a thread cannot write whole
 * goes to the loop together with the turn. Only the loop closes the socket, and only once it has the turn for good.
 *
 * <p>A thread whose stack or memory ends while it has the turn gives it up by one store, since it may not be able to
 * call anything: either as it was, or {@link #BROKEN}, and then whoever next needs the turn on the loop closes the
 * socket.
 */
final class WriteTurn implements CloseWatch.SocketUser {
    /** A message that a thread may write itself. */
    interface Message {
        /**
         * Copies the message, as it goes to the socket, to an empty buffer of {@link #MAX_BYTES}, for which it is not
         * too large. What this throws leaves the message as it was.
         */
        void copyTo(ByteBuffer frame);

        /**
         * Called on the thread that is about to write the message itself, when it has been copied. What the reply to it
         * will need has to be done here, and from here on the object may have another use.
         *
         * @return false if the message has to go by the event loop after all, and is unchanged
         */
        boolean leavesHere();
    }

    /** A message that takes more than this is left to the loop. */
    static final int MAX_BYTES = 2 * 1024;

    /** A batch above this goes through the channel. Each event loop has a buffer of this size. */
    private static final int MAX_BATCH_BYTES = 32 * 1024;

    private static final int FREE = 0;
    private static final int LOOP = 1;
    private static final int CALLER = 2;

    /** A thread could not write all: the loop takes over. */
    private static final int LEFT_TO_LOOP = 3;

    /** The loop's for good. */
    private static final int ENDED = 4;

    /** A thread failed in the midst of a frame: nobody writes any more. */
    private static final int BROKEN = 5;

    /** After so many looks at a thread that writes, it has lost its processor: the loop's goes to others. */
    private static final int YIELDS = 1_000;

    private static final long WAIT_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private static final VarHandle OWNER;

    static {
        try {
            OWNER = MethodHandles.lookup().findVarHandle(WriteTurn.class, "owner", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final Channel channel;
    private final ChannelHandler connection;

    /** The loop's until it has flushed for the first time. */
    private volatile int owner = LOOP;

    /** The loop found the turn taken, and has something to write: nobody goes before it. Cleared when it has the turn. */
    private volatile boolean wanted;

    /** What threads write to; null where the loop alone may. */
    private @Nullable Socket socket;

    /** Of whoever has the turn. */
    private @Nullable ByteBuffer buffer;

    // the loop's alone
    private boolean waitingForSocket;

    private boolean isBroken;

    private boolean ended;

    /** @param connection the channel's handler that takes turns with threads */
    WriteTurn(Channel channel, ChannelHandler connection) {
        this.channel = channel;
        this.connection = connection;
    }

    // ---- any thread

    /** What it throws is thrown before the turn is taken: nothing is called behind the exchange. */
    boolean takeForCaller() {
        if (owner != FREE || wanted) {
            return false;
        }
        ByteBuffer own = buffer;
        if (own == null) {
            try {
                // not under the turn: this can take long where direct memory is short, and the loop may have to wait
                own = ByteBuffer.allocateDirect(MAX_BYTES);
            } catch (OutOfMemoryError none) {
                return false;
            }
        }
        if (!OWNER.compareAndSet(this, FREE, CALLER)) {
            return false;
        }
        buffer = own;
        return true;
    }

    /**
     * Copies a message of at most {@link #MAX_BYTES}, and tells it that it leaves; the caller has the turn, and has not
     * after a throw. That leaves all as it was if it comes from the copying, and otherwise {@link #BROKEN}.
     *
     * @return what the message said; if false, the caller still has the turn
     */
    boolean fill(Message message) {
        int after = FREE;
        boolean isDone = false;
        try {
            ByteBuffer frame = java.util.Objects.requireNonNull(buffer);
            frame.clear();
            message.copyTo(frame);
            frame.flip();
            // whatever it has done when it fails
            after = BROKEN;
            boolean leaves = message.leavesHere();
            isDone = true;
            return leaves;
        } finally {
            if (!isDone) {
                owner = after;
            }
        }
    }

    /**
     * Writes what was filled in. @return whether all of it has left: otherwise the loop has to take over. What it
     * throws leaves {@link #BROKEN}
     */
    boolean write() {
        int after = BROKEN;
        try {
            ByteBuffer frame = java.util.Objects.requireNonNull(buffer);
            try {
                int written = java.util.Objects.requireNonNull(socket).send(frame, 0, frame.limit());
                frame.position(Math.max(0, written));
            } catch (IOException broken) {
                // the loop's own attempt tells it the same, and ends the connection
            }
            after = frame.hasRemaining() ? LEFT_TO_LOOP : CALLER;
        } finally {
            if (after != CALLER) {
                owner = after;
            }
        }
        return after == CALLER;
    }

    /** @return true if the loop has to be woken */
    boolean callerDone() {
        owner = FREE;
        return wanted;
    }

    // ---- the event loop

    boolean takeForLoop() {
        int now = owner;
        if (now == LOOP || now == ENDED) {
            return true;
        }
        if (now == BROKEN) {
            // first: where this fails, nobody writes all the same
            channel.unsafe().close(channel.voidPromise());
            // as if it were the loop's: what it writes from here on is thrown away
            takeOver();
            return true;
        }
        if (!OWNER.compareAndSet(this, FREE, LOOP)) {
            wanted = true;
            // once more: whoever had it may have given it back before he could see that it is wanted
            if (!OWNER.compareAndSet(this, FREE, LOOP)) {
                return false;
            }
        }
        if (wanted) {
            wanted = false;
        }
        return true;
    }

    /** What a thread could not write; null if none has left anything. Nobody has the turn until {@link #takeOver}. */
    @Nullable
    ByteBuffer rest() {
        return owner == LEFT_TO_LOOP ? buffer : null;
    }

    /** The {@link #rest} is in the loop's hands, and so is the turn. */
    void takeOver() {
        if (ended) {
            endTurn();
        } else {
            owner = LOOP;
        }
        wanted = false;
    }

    /** What a thread has to write to: for tests. */
    int bufferBytes() {
        ByteBuffer own = buffer;
        return own == null ? 0 : own.capacity();
    }

    /** Nobody has the turn any more, and nobody is at the buffer: whoever holds the connection holds none by that. */
    private void endTurn() {
        buffer = null;
        owner = ENDED;
    }

    /**
     * Writes straight to the socket if nothing waits before it: most batches leave at once, and have no use for a buffer
     * of their own and a place in the channel's queue. The loop has the turn.
     *
     * @return how many of the bytes have left; the channel has to be given the rest, and hears of what is wrong with
     *     the socket
     */
    int writeHere(byte[] bytes, int count) {
        if (count > MAX_BATCH_BYTES || !isNothingBefore()) {
            return 0;
        }
        ByteBuffer out = outgoing();
        if (out == null) {
            return 0;
        }
        out.clear().put(bytes, 0, count);
        return sent(out, 0, count);
    }

    /** The same of a direct buffer, whose reader's index goes on. */
    void writeHere(ByteBuf batch) {
        if (isNothingBefore()) {
            ByteBuffer out = batch.internalNioBuffer(batch.readerIndex(), batch.readableBytes());
            batch.skipBytes(sent(out, out.position(), out.limit()));
        }
    }

    private boolean isNothingBefore() {
        if (socket == null || owner != LOOP || ended) {
            return false;
        }
        ChannelOutboundBuffer pending = channel.unsafe().outboundBuffer();
        return pending != null && pending.isEmpty() && pending.totalPendingWriteBytes() == 0;
    }

    private int sent(ByteBuffer out, int from, int end) {
        try {
            return Math.max(0, java.util.Objects.requireNonNull(socket).send(out, from, end));
        } catch (IOException broken) {
            isBroken = true;
            return 0;
        }
    }

    /** Whether a write of the loop's to the socket has failed, of which the channel has not heard yet. */
    boolean isBroken() {
        return isBroken;
    }

    private static @Nullable ByteBuffer outgoing() {
        if (!(Thread.currentThread() instanceof LoopThread loop)) {
            return null;
        }
        if (loop.outgoing == null) {
            try {
                loop.outgoing = ByteBuffer.allocateDirect(MAX_BATCH_BYTES);
            } catch (OutOfMemoryError none) {
                return null;
            }
        }
        return loop.outgoing;
    }

    /** The loop has flushed: callers may write as soon as the socket has taken everything. */
    void loopDone() {
        if (owner != LOOP || waitingForSocket) {
            return;
        }
        ChannelOutboundBuffer pending = channel.unsafe().outboundBuffer();
        if (pending == null || !open()) {
            return;
        }
        if (pending.isEmpty()) {
            owner = FREE;
            return;
        }
        waitingForSocket = true;
        channel.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(taken -> {
            waitingForSocket = false;
            loopDone();
        });
    }

    /** The socket is about to be closed: no thread is at it when this returns, and none comes after. Waits for one write that never blocks. */
    void end() {
        ended = true;
        int looks = 0;
        while (!takeForLoop()) {
            if (owner == LEFT_TO_LOOP) {
                return;
            }
            if (++looks < YIELDS) {
                Thread.yield();
            } else {
                LockSupport.parkNanos(WAIT_NANOS);
            }
        }
        endTurn();
    }

    @Override
    public void socketCloses() {
        end();
    }

    private boolean open() {
        if (socket == null) {
            CloseWatch.Registration registration = CloseWatch.ofPlainSocket(channel, connection);
            if (registration != null && registration.fd() instanceof Socket descriptor) {
                registration.writing = this;
                socket = descriptor;
            }
        }
        return socket != null;
    }
}
