package dev.rpcx.internal.io;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelOutboundBuffer;
import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Decides which thread writes to a connection's socket: the event loop, or another thread that has a small message. The
 * right to write is called the turn. Another thread takes the turn only if no thread has it, and no other message has
 * to be sent together with the small message. Such a thread saves a wake-up of the event loop, which takes some 10 µs.
 *
 * <p>The event loop does not wait for the turn, except in {@link #end}. If another thread has the turn, the event loop
 * sets {@code wanted}, and the other thread wakes the event loop after it has given the turn back. If the other thread
 * cannot write its whole message, the event loop gets the turn and writes the rest. Only the event loop closes the
 * socket. Before that, the event loop takes the turn, which it never gives back.
 *
 * <p>A thread that runs out of stack or memory gives up the turn by a single assignment to {@code owner}, because a
 * method call could fail. If the thread has changed neither its message nor the socket, the turn becomes free.
 * Otherwise the turn becomes {@link #BROKEN}, and the event loop closes the socket when it next takes the turn.
 */
public final class WriteTurn implements CloseWatch.SocketUser {
    /** A message that a thread other than the event loop can write to the socket. */
    public interface Message {
        /**
         * Copies the message, in the form in which it is sent, to an empty buffer of {@link #MAX_BYTES} bytes. The
         * message must fit into the buffer. If this method throws, the message is unchanged.
         */
        void copyTo(ByteBuffer frame);

        /**
         * Prepares for the peer's answer, which can arrive while the message is being written. Called after
         * {@code copyTo}, by the thread that is about to write the message. After this method has returned true, this
         * object can be used for another message.
         *
         * @return false if the event loop has to send the message; the message is unchanged in this case
         */
        boolean beforeDirectWrite();
    }

    /**
     * Largest size, in bytes, of a message that a thread other than the event loop writes. The message's header counts
     * too. The event loop writes larger messages.
     */
    public static final int MAX_BYTES = 2 * 1024;

    /**
     * Largest number of bytes of an array that the event loop writes to the socket without the channel. The event loop
     * first copies the bytes to its direct buffer, which has this size. Longer arrays are written through the channel.
     */
    private static final int MAX_BATCH_BYTES = 32 * 1024;

    private static final int FREE = 0;
    private static final int LOOP = 1;
    private static final int CALLER = 2;

    /**
     * State after a thread other than the event loop could not write its whole message. The event loop has to write the
     * rest.
     */
    private static final int HANDED_TO_LOOP = 3;

    /**
     * State after the event loop has taken the right to write, which it never gives back because the connection is
     * ending.
     */
    private static final int ENDED = 4;

    /**
     * State after {@code beforeDirectWrite} or {@link #write} has thrown an exception on a thread other than the event
     * loop. An error of the socket does not lead to this state. No thread writes any more, and the event loop closes
     * the socket.
     */
    private static final int BROKEN = 5;

    /**
     * Maximum number of times that the event loop calls {@code Thread.yield} while it waits for another thread to
     * finish writing. If the other thread is still writing afterwards, it has probably lost its processor, and the
     * event loop sleeps between two checks.
     */
    private static final int MAX_YIELDS = 1_000;

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
     * State of the right to write: one of the constants from {@code FREE} to {@code BROKEN}, which say who has this
     * right. The event loop has the right until it has flushed the channel for the first time, or always if other
     * threads cannot write to the socket.
     *
     * <p>The event loop and every other thread that writes change this field. Whoever takes the right sees the fields
     * that the previous owner has stored, such as {@code buffer} and {@code socket}, because the previous owner stores
     * {@code owner} last. Two threads that write at the same time would mix their messages. Tested by
     * {@code WriteTurnRace}.
     */
    private volatile int owner = LOOP;

    /**
     * Whether the event loop has asked another thread for the right to write. While this is true, no thread other than
     * the event loop begins to take this right, but a thread that has already begun can still get it. Cleared when the
     * event loop has this right. The event loop writes this field, and the other threads read it.
     */
    private volatile boolean wanted;

    /**
     * Socket for direct writes, by the event loop and by other threads. Null until the event loop has flushed the
     * channel for the first time, and always null if only the channel can write, for example with TLS. The socket stays
     * set after {@link #end}.
     */
    private CloseWatch.@Nullable DirectSocket socket;

    /**
     * Direct buffer for the message of a thread other than the event loop; null if there is none. Only the thread that
     * has the right to write uses the buffer.
     */
    private @Nullable ByteBuffer buffer;

    /**
     * Whether the event loop waits until the socket has taken all bytes in the channel's queue. Used only on the event
     * loop.
     */
    private boolean waitingForSocket;

    /** Whether a direct write of the event loop to the socket has failed. Used only on the event loop. */
    private boolean isBroken;

    /**
     * Whether {@link #end} has been called. If it has, {@link #takeOver} makes the event loop the permanent owner of
     * the right to write. Used only on the event loop.
     */
    private boolean ended;

    /**
     * Creates the turn, that is, the right to write, of a connection. The event loop has the turn at first.
     *
     * @param connection the connection's handler in the channel's pipeline. If another handler comes before it, for
     *     example for TLS, only the channel can write to the socket
     */
    public WriteTurn(Channel channel, ChannelHandler connection) {
        this.channel = channel;
        this.connection = connection;
    }

    // ---- methods that any thread may use

    /**
     * Takes the turn, that is, the right to write, for the calling thread. Takes the turn only if the turn is free, the
     * event loop has not asked for the turn, and there is memory for the buffer. If this method throws, the turn has
     * not been taken. To ensure this, no method may be called after {@code compareAndSet} has taken the turn, since
     * that method could throw.
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
                // The buffer is allocated before the right to write is taken. If direct memory is short, the allocation
                // takes long, and the event loop could need this right during this time.
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
     * Copies a message of at most {@link #MAX_BYTES} to the buffer, and calls {@code beforeDirectWrite} of the message.
     * The calling thread must have the turn, that is, the right to write. If copying throws, the turn is free and the
     * message is unchanged. If {@code beforeDirectWrite} throws, the turn is {@link #BROKEN}.
     *
     * @return the result of {@code beforeDirectWrite}. The calling thread keeps the turn even if the result is false
     */
    public boolean fill(Message message) {
        int after = FREE;
        boolean isDone = false;
        try {
            ByteBuffer frame = java.util.Objects.requireNonNull(buffer);
            frame.clear();
            message.copyTo(frame);
            frame.flip();
            // if beforeDirectWrite fails, it can have done half of its work, so the right to write must not become free
            after = BROKEN;
            boolean writesHere = message.beforeDirectWrite();
            isDone = true;
            return writesHere;
        } finally {
            if (!isDone) {
                owner = after;
            }
        }
    }

    /**
     * Writes to the socket the message that {@link #fill} has copied. If this method throws, the state becomes
     * {@link #BROKEN}, and no thread writes any more.
     *
     * @return whether the whole message has been written; if not, the event loop has to write the rest
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
            after = frame.hasRemaining() ? HANDED_TO_LOOP : CALLER;
        } finally {
            if (after != CALLER) {
                owner = after;
            }
        }
        return after == CALLER;
    }

    /**
     * Gives up the calling thread's turn, so that any thread can take the turn. Reads {@code wanted} only after giving
     * up the turn. In the reverse order, the event loop could set {@code wanted} and fail to take the turn between the
     * two steps. Then nobody would wake the event loop. Tested by {@code WriteTurnRace}.
     *
     * @return true if the event loop wants the turn; the calling thread has to wake the event loop in this case
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
            // The socket is closed before the event loop takes the right to write. If the close fails, the state stays
            // BROKEN, and no thread writes.
            channel.unsafe().close(channel.voidPromise());
            // the channel is closed now and discards all output, so the event loop can safely get the right to write
            takeOver();
            return true;
        }
        if (!OWNER.compareAndSet(this, FREE, LOOP)) {
            wanted = true;
            // The event loop tries once more to take the right to write. The other thread can have given this right
            // back just before this thread set the field wanted. In that case, the other thread does not wake the event
            // loop. Tested by {@code WriteTurnRace}.
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
     * Returns the part of a message that another thread could not write; null if there is none. If there is one, no
     * thread writes until the event loop calls {@link #takeOver}.
     */
    public @Nullable ByteBuffer rest() {
        return owner == HANDED_TO_LOOP ? buffer : null;
    }

    /**
     * Makes the event loop the owner of the right to write, after another thread could not write its whole message.
     * Before this call, the event loop must have copied the {@link #rest} of the message, or closed the channel.
     */
    public void takeOver() {
        if (ended) {
            endTurn();
        } else {
            owner = LOOP;
        }
        wanted = false;
    }

    /** Returns the size in bytes of the buffer for messages of other threads; 0 if there is no buffer. For tests. */
    public int bufferBytes() {
        ByteBuffer own = buffer;
        return own == null ? 0 : own.capacity();
    }

    /**
     * Gives the right to write to the event loop, which never gives it back. Drops the buffer for messages of other
     * threads, because this object can stay in memory for a long time.
     */
    private void endTurn() {
        buffer = null;
        owner = ENDED;
    }

    /**
     * Writes bytes directly to the socket, without the buffer and the entry in the queue that a write through the
     * channel would need. If some of the bytes have not been sent, the caller has to write these bytes to the channel.
     * If the socket has failed, the caller's write to the channel fails too. The event loop must have the right to
     * write.
     *
     * <p>This method writes nothing if {@code socket} is null, if {@link #end} has been called, if the channel's queue
     * is not empty, if {@code count} is too large for the event loop's buffer, or if there is no memory for this
     * buffer.
     *
     * @return number of bytes that have been sent
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
     * Writes a direct buffer to the socket, if {@code socket} is not null and the channel's queue is empty. The
     * buffer's reader index advances by the number of bytes that have been sent. The caller has to write the remaining
     * bytes to the channel. The event loop must have the right to write.
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
     * Returns whether a direct write of the event loop to the socket has failed. The channel learns of the failure only
     * when the channel itself writes.
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
     * Makes the right to write free for other threads after the event loop has flushed the channel. If the channel's
     * queue still has bytes, the right becomes free only after the socket has taken these bytes. Does nothing if other
     * threads cannot write to the socket, for example with TLS.
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
     * Prevents all further writing by other threads, before the socket is closed. When this method returns, no other
     * thread uses the socket. Usually waits for at most one write of another thread, and such a write never blocks.
     * Tested by {@code RacesTest.nobodyWritesOnceTheTurnHasEnded}.
     */
    public void end() {
        ended = true;
        int looks = 0;
        while (!takeForLoop()) {
            if (owner == HANDED_TO_LOOP) {
                return;
            }
            if (++looks < MAX_YIELDS) {
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
            if (registration != null) {
                registration.writing = this;
                socket = registration;
            }
        }
        return socket != null;
    }
}
