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
 * Outgoing message, which is its own link in the {@link Outbox}, so that queueing a message allocates nothing. The body
 * lies on the heap, so a message that is dropped on any path leaks nothing; whoever writes it copies the body into a
 * buffer that goes to the socket.
 */
public abstract class Outbound implements WriteTurn.Message {
    /** Largest message in bytes that is not charged while its place is charged. */
    public static final int SMALL_BYTES = UnchargedAllowance.SMALL_BYTES;

    /**
     * Largest body in bytes whose buffer is kept for the next call: a burst of large messages must not stay in memory.
     * 100 000 characters fit.
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

    /** Type and flags, without {@link Wire#MORE}. */
    public int head;

    public int id;
    public final ByteBuf body;

    /**
     * Whether the message stays on the heap, whatever its size, until the socket takes more. Set in
     * {@link #beforeSend}.
     */
    public boolean holdUntilWritable;

    /** True once the first fragment has left: the next fragment is a {@link Wire#PART}. */
    public boolean begun;

    /**
     * Size class, by which {@link FrameScheduler} decides which messages wait for each other. It is set when the
     * message is added there.
     */
    byte size;

    /** Bytes that have not left. {@link FrameScheduler} sets this while the message waits there. */
    int waitingBytes;

    public Outbound() {
        this(Unpooled.buffer(FIRST_BYTES));
    }

    public Outbound(ByteBuf body) {
        this.body = body;
    }

    /** Called on the event loop before the first byte leaves; false drops the message. */
    public abstract boolean beforeSend();

    /** Called on the event loop before the first byte leaves, if the message has waited in {@code FrameScheduler}. */
    public void begins() {}

    /** Called on the event loop when the last byte stands in a buffer that goes to the socket. */
    public abstract void onSent();

    /**
     * Copies header and body as one frame. The length field takes at most two bytes, since a thread writes only small
     * frames itself.
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

    /** By default a message has to go by the event loop. */
    @Override
    public boolean beforeDirectWrite() {
        return false;
    }

    /**
     * Called when the connection closed before the message began to leave. On the event loop, or on any thread after
     * the end of the loop.
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

    /** A frame without an owner: settings, cancel, credit, ping. */
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
