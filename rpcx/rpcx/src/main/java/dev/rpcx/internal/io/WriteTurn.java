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
 * Decides which thread writes to a connection's socket: the event loop, or another thread that has a small message.
 * Whoever may write has the turn. Another thread takes the turn only if nobody has it and nothing else is to be sent
 * together with the message. By writing the message itself, it saves a wake-up of the event loop, some 10 µs.
 *
 * <p>The event loop does not wait for the turn, except at the end. If another thread has the turn, the loop sets
 * {@code wanted}, and that thread wakes the loop afterwards. If the thread cannot write all of its message, the turn
 * and the remaining bytes go to the event loop. Only the event loop closes the socket, and only once it has the turn
 * for good.
 *
 * <p>A thread that runs out of stack or memory gives the turn up by a single store, since it may not be able to call a
 * method. The turn is then either free, as if the thread had never taken it, or {@link #BROKEN}. If it is broken, the
 * event loop closes the socket when it next takes the turn.
 */
public final class WriteTurn implements CloseWatch.SocketUser {
    /** A message that a thread other than the event loop may write itself. */
    public interface Message {
        /**
         * Copies the message, as it is sent, to the buffer {@code frame}. The buffer is empty and has
         * {@link #MAX_BYTES} bytes, into which the message must fit. If this method throws, the message is unchanged.
         */
        void copyTo(ByteBuffer frame);

        /**
         * Called after {@code copyTo}, on the thread that is about to write the message. Has to prepare everything for
         * the peer's answer, which may arrive while the message is being written. Once this method has returned true,
         * the object may be used for something else.
         *
         * @return false if the event loop has to send the message instead; the message is unchanged then
         */
        boolean beforeDirectWrite();
    }

    /**
     * Largest size in bytes of a frame that a thread other than the event loop writes. The event loop writes larger
     * frames.
     */
    public static final int MAX_BYTES = 2 * 1024;

    /**
     * Largest number of bytes of a heap array that the event loop writes directly to the socket. They are copied to a
     * direct buffer of this size first, of which each event loop has one. More bytes are left to the channel.
     */
    private static final int MAX_BATCH_BYTES = 32 * 1024;

    private static final int FREE = 0;
    private static final int LOOP = 1;
    private static final int CALLER = 2;

    /** State after another thread could not write all of its message. The event loop has to write the rest. */
    private static final int LEFT_TO_LOOP = 3;

    /** State after the event loop has taken the turn for good. */
    private static final int ENDED = 4;

    /** State after another thread has failed in the midst of a frame. Nobody may write any more. */
    private static final int BROKEN = 5;

    /**
     * Number of times that the event loop yields while it waits for another thread's write. If the write then still
     * goes on, the thread has probably lost its processor, so the loop parks between two checks.
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

    /**
     * State of the turn: one of the constants above. It says who has the turn, if anybody has it. The event loop has the
     * turn until its first flush.
     */
    private volatile int owner = LOOP;

    /**
     * True if the event loop wants the turn; then no other thread takes the turn. Cleared when the loop has the turn.
     */
    private volatile boolean wanted;

    /** Socket to which threads write; null if only the event loop may write. */
    private @Nullable Socket socket;

    /** Direct buffer for the frame that another thread writes. Only whoever has the turn may use it. */
    private @Nullable ByteBuffer buffer;

    /**
     * True while the event loop waits until the socket has taken everything in the channel's queue. Event loop only.
     */
    private boolean waitingForSocket;

    /** True once the event loop has failed to write directly to the socket. Event loop only. */
    private boolean isBroken;

    /**
     * True once {@link #end} has been called. When the event loop next gets the turn, it keeps it for good. Event loop
     * only.
     */
    private boolean ended;

    /**
     * Creates the turn of a connection. At first the event loop has it.
     *
     * @param connection the channel's handler that writes the bytes of the socket
     */
    public WriteTurn(Channel channel, ChannelHandler connection) {
        this.channel = channel;
        this.connection = connection;
    }

    // ---- methods that any thread may use

    /**
     * Takes the turn for the calling thread if it is free. If this method throws, the turn has not been taken. So the
     * code must call no method after the exchange that takes the turn.
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
     * @return what {@code beforeDirectWrite} has returned; in either case the calling thread still has the turn
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
     * Writes to the socket the message that {@code fill} has copied. If this method throws, the turn is
     * {@link #BROKEN}.
     *
     * @return false if not all of the message has been written; then the event loop has to write the rest
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
     * Gives the turn back, so that anyone may take it.
     *
     * @return true if the event loop wants the turn, and the calling thread has to wake the loop
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
     * Returns the bytes of a message that another thread could not write; null if there are none. If there are some,
     * nobody has the turn until {@link #takeOver}.
     */
    public @Nullable ByteBuffer rest() {
        return owner == LEFT_TO_LOOP ? buffer : null;
    }

    /**
     * Gives the turn to the event loop. Called after the loop has copied the {@link #rest} of a message, or has found
     * the turn {@link #BROKEN}.
     */
    public void takeOver() {
        if (ended) {
            endTurn();
        } else {
            owner = LOOP;
        }
        wanted = false;
    }

    /** Returns the size in bytes of the buffer for frames that other threads write; 0 if there is none. For tests. */
    public int bufferBytes() {
        ByteBuffer own = buffer;
        return own == null ? 0 : own.capacity();
    }

    /**
     * Gives the turn to the event loop for good. Drops the buffer, since the connection may stay in memory for a long
     * time.
     */
    private void endTurn() {
        buffer = null;
        owner = ENDED;
    }

    /**
     * Writes bytes directly to the socket, if the channel's queue is empty. This saves a buffer and an entry in that
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
     * Writes a direct buffer to the socket, if the channel's queue is empty. The reader index advances by the number of
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

    /**
     * Whether the event loop has failed to write directly to the socket. The channel learns of the error only by its
     * own next write.
     */
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

    /**
     * Called when the event loop has flushed the channel. Gives the turn back as soon as the socket has taken
     * everything, so that other threads may write.
     */
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
     * Ends writing by other threads, before the socket is closed. When this method returns, no other thread uses the
     * socket, and none will do so later. Waits for at most one write of another thread, which never blocks.
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
