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
 * A message to the peer, such as a request or a reply. It is its own link in the queue {@link Outbox}, so queueing
 * allocates nothing. Its body is on the heap, so a dropped message leaks nothing. When the message is written, the
 * bytes of the body are copied.
 */
public abstract class Outbound implements WriteTurn.Message {
    /**
     * Largest size in bytes of a small message. A small message is not charged while the place of its call is charged,
     * see {@code Resource.CALLS}.
     */
    public static final int SMALL_BYTES = UnchargedAllowance.SMALL_BYTES;

    /**
     * Largest capacity in bytes of a body that is kept for the next call. A larger body is shrunk, so that a burst of
     * large messages does not stay in memory. A text of 100 000 ASCII characters fits.
     */
    public static final int KEPT_BYTES = 128 * 1024;

    public static final int FIRST_BYTES = 256;

    public static final VarHandle NEXT;

    static {
        try {
            NEXT = MethodHandles.lookup().findVarHandle(Outbound.class, "next", Outbound.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    public volatile @Nullable Outbound next;

    /** Type and flags of the frame, without {@link Wire#MORE}. */
    public int head;

    public int id;
    public final ByteBuf body;

    /**
     * Whether the message waits, whatever its size, until the socket can take more bytes. Set in {@link #beforeSend}.
     */
    public boolean holdUntilWritable;

    /** True once the first frame of the message has been written. Each further frame has the type {@link Wire#PART}. */
    public boolean isFirstFragmentWritten;

    /** Size class of the message in {@link FrameScheduler}, which sets this field. */
    byte sizeClass;

    /** Number of bytes that are still to be sent. Set by {@link FrameScheduler} while the message waits there. */
    int waitingBytes;

    public Outbound() {
        this(Unpooled.buffer(FIRST_BYTES));
    }

    public Outbound(ByteBuf body) {
        this.body = body;
    }

    /**
     * Called on the event loop before the first byte of the message is sent.
     *
     * @return false if the message is to be dropped; no other method is called then
     */
    public abstract boolean beforeSend();

    /** Called on the event loop before the first byte is sent, if the message has waited in {@link FrameScheduler}. */
    public void begins() {}

    /** Called on the event loop when the last byte of the message has been copied for the socket. */
    public abstract void onSent();

    /** Copies the message as one frame. Only for small messages: the length is written in at most two bytes. */
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

    /** Returns false, so that the event loop sends the message. A subclass may let another thread write it. */
    @Override
    public boolean beforeDirectWrite() {
        return false;
    }

    /**
     * Called instead of {@code beforeSend} if the connection is closed. Runs on the event loop, or on any thread if the
     * event loop has ended. Not called for a message that waits in {@link FrameScheduler} when the connection ends.
     */
    public abstract void onDropped();

    public final void clearBody() {
        body.clear();
        if (body.capacity() > KEPT_BYTES) {
            shrinkBody();
        }
    }

    public final void shrinkBody() {
        body.clear();
        body.capacity(FIRST_BYTES);
    }

    /** A message of one frame, such as SETTINGS, CANCEL, CREDIT or PING. Nobody is notified of what becomes of it. */
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
