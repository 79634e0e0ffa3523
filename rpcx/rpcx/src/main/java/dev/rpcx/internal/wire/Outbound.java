package dev.rpcx.internal.wire;

import dev.rpcx.internal.io.WriteTurn;
import dev.rpcx.internal.ledger.UnchargedAllowance;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * A message to the peer, such as a request or a reply. The field {@code next} links the messages of the queue
 * {@link Outbox}, so queueing allocates nothing. The body is on the heap, so a dropped message leaks nothing. When the
 * message is written, the bytes of the body are copied.
 */
public abstract class Outbound implements WriteTurn.Message {
    /**
     * Largest size in bytes of a small message. A client does not charge a small request once the call has a slot. A
     * server charges each reply that has to wait, even a small one. It can charge other small messages too: see
     * {@link UnchargedAllowance}.
     */
    public static final int MAX_SMALL_BYTES = UnchargedAllowance.MAX_SMALL_BYTES;

    /**
     * Largest capacity in bytes of a body that is kept for the next call. A larger body is shrunk, so that a burst of
     * large messages does not stay in memory. A text of 100,000 ASCII characters fits.
     */
    public static final int MAX_KEPT_BYTES = 128 * 1024;

    public static final int FIRST_BYTES = 256;

    /** Writes {@link #next} without the cost of a volatile store, where a weaker memory order is sufficient. */
    public static final VarHandle NEXT;

    static {
        try {
            NEXT = MethodHandles.lookup().findVarHandle(Outbound.class, "next", Outbound.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /**
     * The message behind this one in the queue {@link Outbox}; null if there is none.
     *
     * <ul>
     *   <li>The thread that adds this message to the queue sets the field to null first.
     *   <li>The thread that adds the next message stores the next message in the field.
     *   <li>The thread that takes messages reads the field, and sets it to null when it takes this message.
     * </ul>
     *
     * <p>A message has its content before it is stored in this field of another message. So the thread that takes the
     * message sees the content. Tested by {@code OutboxRace}.
     *
     * <p>At a server, {@code SentReplies} and {@code Admission} use this field for lists of calls that are not in the
     * queue.
     */
    public volatile @Nullable Outbound next;

    /**
     * Type and flags of the first frame of this message. Only a DICTIONARY or SCHEMA frame has the flag
     * {@link Wire#MORE} here. For other messages, {@link WireConnection} adds the flag to each frame that a PART frame
     * follows.
     */
    public int head;

    public int id;
    public final ByteBuf body;

    /**
     * Whether this message waits until the socket can take more bytes, even if the message is small. The method
     * {@link #beforeSend} sets this field.
     */
    public boolean holdUntilWritable;

    /**
     * True once the first frame of the message has been written. Each further frame has the type {@link Wire#PART}.
     * This field is set only for a client's request and for a message that has waited in {@link FrameScheduler}.
     */
    public boolean isFirstFragmentWritten;

    /**
     * Size class of this message, 1 or higher; 0 for a message of one frame, which has no size class.
     * {@link FrameScheduler} sets this field, and sends the messages of one size class one after the other.
     */
    byte sizeClass;

    /**
     * Number of bytes of the body that are still to be sent. {@link FrameScheduler} sets this field when the message is
     * added to it, and after each frame except the last.
     */
    int waitingBytes;

    public Outbound() {
        this(Unpooled.buffer(FIRST_BYTES));
    }

    public Outbound(ByteBuf body) {
        this.body = body;
    }

    /**
     * Called on the event loop before the event loop sends the first byte of this message.
     *
     * @return false if this message is not to be sent now; in that case no other method of this message is called,
     *     unless the message is queued again
     */
    public abstract boolean beforeSend();

    /**
     * Called only for a message that has been in {@link FrameScheduler}, on the event loop, just before the first byte
     * of the message is sent. The method {@link #beforeSend} was called before the message was added there.
     */
    public void begins() {}

    /** Called on the event loop when the last byte of this message has been copied into a buffer for the socket. */
    public abstract void onSent();

    /**
     * Copies this message, as one frame, into {@code frame}. This message must be small, because its length is written
     * in at most two bytes.
     */
    @Override
    public final void copyTo(ByteBuffer frame) {
        int bytes = body.readableBytes();
        int length = Wire.HEAD_BYTES + bytes;
        if (length < 0x80) {
            frame.put((byte) length);
        } else {
            frame.put((byte) (length | 0x80)).put((byte) (length >>> 7));
        }
        frame.put((byte) head).putInt(id);
        frame.put(body.array(), body.arrayOffset() + body.readerIndex(), bytes);
    }

    /**
     * Returns false, so that only the event loop sends this message. A subclass can override this method to let another
     * thread write the message. Neither {@link #beforeSend} nor {@link #onSent} is called for a message that another
     * thread writes.
     */
    @Override
    public boolean beforeDirectWrite() {
        return false;
    }

    /**
     * Called instead of {@code beforeSend} if the connection has closed. Not called for a message that waits in
     * {@link FrameScheduler} when the connection closes, since {@code beforeSend} was called for that message before
     * the wait. Runs on the event loop, or on any thread if the event loop has ended.
     */
    public abstract void onDropped();

    public final void clearBody() {
        body.clear();
        if (body.capacity() > MAX_KEPT_BYTES) {
            shrinkBody();
        }
    }

    public final void shrinkBody() {
        body.clear();
        body.capacity(FIRST_BYTES);
    }

    /**
     * A message of one frame, such as SETTINGS, CANCEL, CREDIT or PING. Nobody is notified when the message is sent or
     * dropped.
     */
    public static class Control extends Outbound {
        public Control(int head, int id, ByteBuf body) {
            super(body);
            this.head = head;
            this.id = id;
        }

        public static Control empty(int head, int id) {
            return new Control(head, id, Unpooled.EMPTY_BUFFER);
        }

        @Override
        public boolean beforeSend() {
            return true;
        }

        @Override
        public void onSent() {}

        @Override
        public void onDropped() {}
    }
}
