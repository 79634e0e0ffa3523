package dev.rpcx.internal.io;

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
 * Decides who writes to a connection's socket: the event loop, or a thread that has a small message. That thread saves
 * a wake-up of the event loop, some 10 µs. It writes its message itself if nobody else is writing and nothing else is
 * to be sent together with the message.
 *
 * <p>The event loop does not wait for the turn, except at the end. If the turn is taken, the loop sets {@code wanted},
 * and the thread that has the turn wakes the loop. If a thread cannot write all of a message, the turn and the
 * remaining bytes go to the event loop. Only the event loop closes the socket, and only once it has the turn for good.
 *
 * <p>A thread that runs out of stack or memory gives the turn up by a single store, since it may not be able to call a
 * method. The turn is then either free, as if the thread had never taken it, or {@link #BROKEN}. If it is broken, the
 * event loop closes the socket when it next takes the turn.
 */
public final class WriteTurn implements CloseWatch.SocketUser {
    /** A message that a thread may write itself. */
    public interface Message {
        /**
         * Copies the message, as it is sent, to {@code frame}, an empty buffer of {@link #MAX_BYTES} bytes. The message
         * must fit into it. If this method throws, the message is unchanged.
         */
        void copyTo(ByteBuffer frame);

        /**
         * Called after the message has been copied, on the thread that is about to write it. Everything that the reply
         * needs has to be prepared here. From now on, the object may be used for something else.
         *
         * @return false if the event loop has to send the message, which is unchanged
         */
        boolean beforeDirectWrite();
    }

    /** Largest size in bytes of a frame that a thread writes itself. The event loop writes a larger one. */
    public static final int MAX_BYTES = 2 * 1024;

    /**
     * Largest number of heap bytes that the event loop writes to the socket without the channel. Each event loop has a
     * direct buffer of this size.
     */
    private static final int MAX_BATCH_BYTES = 32 * 1024;

    private static final int FREE = 0;
    private static final int LOOP = 1;
    private static final int CALLER = 2;

    /** A thread could not write all of its message: the event loop has to take over. */
    private static final int LEFT_TO_LOOP = 3;

    /** The event loop has the turn for good. */
    private static final int ENDED = 4;

    /** A thread failed in the midst of a frame: nobody writes any more. */
    private static final int BROKEN = 5;

    /**
     * Number of times that the event loop yields while another thread writes. Afterwards it parks between two checks,
     * since the other thread has probably lost its processor.
     */
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

    /** Owner or state of the turn. The event loop has the turn until its first flush. */
    private volatile int owner = LOOP;

    /**
     * True if the event loop wants the turn; then no other thread takes the turn. Cleared when the loop has the turn.
     */
    private volatile boolean wanted;

    /** Socket to which threads write; null if only the event loop may write. */
    private @Nullable Socket socket;

    /** Buffer for the message of a thread. It belongs to whoever has the turn. */
    private @Nullable ByteBuffer buffer;

    /** True while the event loop waits until the socket has taken everything. Event loop only. */
    private boolean waitingForSocket;

    /** True once a write of the event loop to the socket has failed. Event loop only. */
    private boolean isBroken;

    /**
     * True once {@link #end} has been called. The event loop then keeps the turn when it next gets it. Event loop only.
     */
    private boolean ended;

    /**
     * Creates a turn. At first the event loop has it.
     *
     * @param connection the channel's handler that writes the bytes of the socket
     */
    public WriteTurn(Channel channel, ChannelHandler connection) {
        this.channel = channel;
        this.connection = connection;
    }

    // ---- methods that any thread may use

    /**
     * Takes the turn for the calling thread if it is free. If this method throws, the turn has not been taken: no
     * method may be called after the exchange that takes the turn.
     *
     * @return whether the calling thread has the turn now
     */
    public boolean takeForCaller() {
        if (owner != FREE || wanted) {
            return false;
        }
        ByteBuffer own = buffer;
        if (own == null) {
            try {
                // allocated before the turn is taken: the allocation may take long if direct memory is short, and the
                // event loop might have to wait for the turn
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
     * Copies a message of at most {@link #MAX_BYTES}, and then calls its {@code beforeDirectWrite}. The calling thread
     * must have the turn. If this method throws, the thread has lost the turn: if copying failed, the turn is free and
     * the message unchanged; if {@code beforeDirectWrite} failed, the turn is {@link #BROKEN}.
     *
     * @return result of {@code beforeDirectWrite}; if false, the calling thread still has the turn
     */
    public boolean fill(Message message) {
        int after = FREE;
        boolean isDone = false;
        try {
            ByteBuffer frame = java.util.Objects.requireNonNull(buffer);
            frame.clear();
            message.copyTo(frame);
            frame.flip();
            // beforeDirectWrite may fail halfway, and then the turn must not become free
            after = BROKEN;
            boolean leaves = message.beforeDirectWrite();
            isDone = true;
            return leaves;
        } finally {
            if (!isDone) {
                owner = after;
            }
        }
    }

    /**
     * Writes the message that {@code fill} has copied. If this method throws, the turn is {@link #BROKEN}.
     *
     * @return false if a part of the message is left; then the event loop has to take over
     */
    public boolean write() {
        int after = BROKEN;
        try {
            ByteBuffer frame = java.util.Objects.requireNonNull(buffer);
            try {
                int written = java.util.Objects.requireNonNull(socket).send(frame, 0, frame.limit());
                frame.position(Math.max(0, written));
            } catch (IOException broken) {
                // the event loop gets the same error when it writes, and ends the connection
            }
            after = frame.hasRemaining() ? LEFT_TO_LOOP : CALLER;
        } finally {
            if (after != CALLER) {
                owner = after;
            }
        }
        return after == CALLER;
    }

    /**
     * Gives the turn back.
     *
     * @return true if the event loop has to be woken
     */
    public boolean callerDone() {
        owner = FREE;
        return wanted;
    }

    // ---- methods that the event loop uses

    public boolean takeForLoop() {
        int now = owner;
        if (now == LOOP || now == ENDED) {
            return true;
        }
        if (now == BROKEN) {
            // closed first: if the close fails, the turn stays broken and nobody writes
            channel.unsafe().close(channel.voidPromise());
            // the event loop may write as usual, since a closed channel discards everything
            takeOver();
            return true;
        }
        if (!OWNER.compareAndSet(this, FREE, LOOP)) {
            wanted = true;
            // tried again: a thread may have given the turn back before it could see that wanted is set, and then would
            // not wake the loop
            if (!OWNER.compareAndSet(this, FREE, LOOP)) {
                return false;
            }
        }
        if (wanted) {
            wanted = false;
        }
        return true;
    }

    /**
     * Returns the part of a message that a thread could not write; null if there is none. If there is one, nobody has
     * the turn until {@link #takeOver}.
     */
    public @Nullable ByteBuffer rest() {
        return owner == LEFT_TO_LOOP ? buffer : null;
    }

    /** Gives the turn to the event loop, which has taken the {@link #rest} or has found the turn {@link #BROKEN}. */
    public void takeOver() {
        if (ended) {
            endTurn();
        } else {
            owner = LOOP;
        }
        wanted = false;
    }

    /** Returns the size in bytes of the buffer for the messages of threads. For tests. */
    public int bufferBytes() {
        ByteBuffer own = buffer;
        return own == null ? 0 : own.capacity();
    }

    /**
     * Gives the turn to the event loop for good, and drops the buffer, since the connection may stay in memory for
     * long.
     */
    private void endTurn() {
        buffer = null;
        owner = ENDED;
    }

    /**
     * Writes bytes to the socket, if nothing waits before them. This saves a buffer and an entry in the channel's
     * queue. The event loop must have the turn.
     *
     * @return number of bytes that have been sent. The caller has to write the others to the channel, which then gets
     *     any error of the socket
     */
    public int writeHere(byte[] bytes, int count) {
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

    /**
     * Writes a direct buffer to the socket, if nothing waits before it. The reader index advances by the number of
     * bytes that have been sent. The caller has to write the others to the channel. The event loop must have the turn.
     */
    public void writeHere(ByteBuf batch) {
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

    /** Whether a write of the event loop has failed and the channel has not been told yet. */
    public boolean isBroken() {
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

    /** Called when the event loop has flushed. Threads may write as soon as the socket has taken everything. */
    public void loopDone() {
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

    /**
     * Ends writing by threads before the socket is closed. When this method returns, no other thread uses the socket,
     * and none will do so later. The method waits for at most one write of another thread, which never blocks.
     */
    public void end() {
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
