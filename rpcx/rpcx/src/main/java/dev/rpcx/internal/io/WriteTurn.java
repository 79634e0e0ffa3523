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
 * Turn to write to a connection's socket. The event loop has it, or a thread with a small message that found the
 * connection quiet. Handing a message to the event loop costs a wake-up, some 10 µs; if nothing else is to be gathered
 * with the message, its thread writes it.
 *
 * <p>Except at the end, the event loop never waits for the turn: if the turn is taken, the loop sets {@code wanted},
 * and the thread that has the turn wakes the loop. If a thread cannot write a message whole, the rest goes to the event
 * loop together with the turn. Only the event loop closes the socket, and only once it has the turn for good.
 *
 * <p>A thread whose stack or memory is exhausted while it has the turn gives the turn up by one store, since it may not
 * be able to call anything. The turn is then free as it was before, or {@link #BROKEN}: in that case the event loop
 * closes the socket when it next needs the turn.
 */
public final class WriteTurn implements CloseWatch.SocketUser {
    /** A message that a thread may write itself. */
    public interface Message {
        /**
         * Copies the message, in the form in which it goes to the socket, to an empty buffer of {@link #MAX_BYTES}, for
         * which it is not too large. If this throws, the message is as before.
         */
        void copyTo(ByteBuffer frame);

        /**
         * Called on the thread that is about to write the message itself, after the message has been copied. Whatever
         * the reply to the message will need has to be done here. From here on the object may have another use.
         *
         * @return false if the message has to go by the event loop after all, and is unchanged
         */
        boolean beforeDirectWrite();
    }

    /** Largest frame in bytes that a thread writes itself; a larger one is left to the event loop. */
    public static final int MAX_BYTES = 2 * 1024;

    /**
     * Most bytes from the heap that the event loop writes without the channel. Each event loop has a direct buffer of
     * this size for them.
     */
    private static final int MAX_BATCH_BYTES = 32 * 1024;

    private static final int FREE = 0;
    private static final int LOOP = 1;
    private static final int CALLER = 2;

    /** A thread could not write all of its message: the event loop takes over. */
    private static final int LEFT_TO_LOOP = 3;

    /** The event loop has the turn for good. */
    private static final int ENDED = 4;

    /** A thread failed in the midst of a frame: nobody writes any more. */
    private static final int BROKEN = 5;

    /**
     * Number of looks after which a thread that still writes is taken to have lost its processor: the event loop then
     * parks between looks, so that its own processor serves others.
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

    /** Holder or state of the turn. It is the event loop's until that has flushed for the first time. */
    private volatile int owner = LOOP;

    /**
     * True if the event loop has found the turn taken and has something to write: no thread goes before it. Cleared
     * when the loop has the turn.
     */
    private volatile boolean wanted;

    /** Socket that threads write to; null if the event loop alone may write. */
    private @Nullable Socket socket;

    /** Buffer for the message of a thread; belongs to whoever has the turn. */
    private @Nullable ByteBuffer buffer;

    // event loop only
    private boolean waitingForSocket;

    private boolean isBroken;

    private boolean ended;

    /** @param connection the channel's handler, whose event loop takes turns with other threads */
    public WriteTurn(Channel channel, ChannelHandler connection) {
        this.channel = channel;
        this.connection = connection;
    }

    // ---- any thread

    /**
     * Takes the turn for the calling thread if it is free. Whatever this throws is thrown before the turn is taken: no
     * method is called after the exchange.
     */
    public boolean takeForCaller() {
        if (owner != FREE || wanted) {
            return false;
        }
        ByteBuffer own = buffer;
        if (own == null) {
            try {
                // allocated before the turn is taken: this can take long when direct memory is short, and the event
                // loop might have to wait
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
     * has the turn, and loses it if this throws: if the copying failed, the turn is free and everything is as before;
     * otherwise the turn is {@link #BROKEN}.
     *
     * @return what {@code beforeDirectWrite} returned; if false, the calling thread still has the turn
     */
    public boolean fill(Message message) {
        int after = FREE;
        boolean isDone = false;
        try {
            ByteBuffer frame = java.util.Objects.requireNonNull(buffer);
            frame.clear();
            message.copyTo(frame);
            frame.flip();
            // beforeDirectWrite may have done anything when it fails
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
     * Writes the message that was filled in. If this throws, the turn is {@link #BROKEN}.
     *
     * @return whether all of the message has left; otherwise the event loop has to take over
     */
    public boolean write() {
        int after = BROKEN;
        try {
            ByteBuffer frame = java.util.Objects.requireNonNull(buffer);
            try {
                int written = java.util.Objects.requireNonNull(socket).send(frame, 0, frame.limit());
                frame.position(Math.max(0, written));
            } catch (IOException broken) {
                // the event loop meets the same error when it writes, and ends the connection
            }
            after = frame.hasRemaining() ? LEFT_TO_LOOP : CALLER;
        } finally {
            if (after != CALLER) {
                owner = after;
            }
        }
        return after == CALLER;
    }

    /** Gives the turn back. @return true if the event loop has to be woken */
    public boolean callerDone() {
        owner = FREE;
        return wanted;
    }

    // ---- the event loop

    public boolean takeForLoop() {
        int now = owner;
        if (now == LOOP || now == ENDED) {
            return true;
        }
        if (now == BROKEN) {
            // closed before the turn is taken over: if the close fails, the turn stays broken and nobody writes
            channel.unsafe().close(channel.voidPromise());
            // the event loop has the turn as at other times, but what it writes from here on is thrown away
            takeOver();
            return true;
        }
        if (!OWNER.compareAndSet(this, FREE, LOOP)) {
            wanted = true;
            // tried once more: the thread that had the turn may have given it back before it could see that it is
            // wanted
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
     * Part of a message that a thread could not write; null if there is none. If there is one, nobody has the turn
     * until {@link #takeOver}.
     */
    public @Nullable ByteBuffer rest() {
        return owner == LEFT_TO_LOOP ? buffer : null;
    }

    /** Gives the turn to the event loop, which has taken the {@link #rest}, or finds the turn {@link #BROKEN}. */
    public void takeOver() {
        if (ended) {
            endTurn();
        } else {
            owner = LOOP;
        }
        wanted = false;
    }

    /** Size in bytes of the buffer for the messages of threads; for tests. */
    public int bufferBytes() {
        ByteBuffer own = buffer;
        return own == null ? 0 : own.capacity();
    }

    /**
     * Ends the turn for good, and drops the buffer: nobody uses it any more, and a holder of the connection must not
     * keep it in memory.
     */
    private void endTurn() {
        buffer = null;
        owner = ENDED;
    }

    /**
     * Writes straight to the socket if nothing waits before these bytes. Most batches leave at once, and then need
     * neither a buffer of their own nor an entry in the channel's queue. The event loop has the turn.
     *
     * @return number of bytes that have left; the rest has to be given to the channel, which then meets any error of
     *     the socket
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

    /** Does the same for a direct buffer, whose reader index advances by the bytes that have left. */
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

    /** Whether a write of the event loop to the socket has failed, of which the channel does not know yet. */
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

    /** Called when the event loop has flushed: threads may write as soon as the socket has taken everything. */
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
     * Ends writing by threads before the socket is closed: when this method returns, no thread is at the socket, and
     * none comes later. It waits for one write, which never blocks.
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
