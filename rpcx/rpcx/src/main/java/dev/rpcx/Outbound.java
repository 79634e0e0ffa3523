package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * A message on its way out, and a link of the {@link Outbox}: queueing one allocates nothing. The body lies on the heap, so a message
 * dropped on any path leaks nothing; the event loop copies it into the pooled buffer that goes to the socket.
 */
abstract class Outbound implements WriteTurn.Message {
    /** A message up to this is not charged while its place is. */
    static final int SMALL_BYTES = Uncharged.SMALL_BYTES;

    /** A body above this is not kept for the next call: a burst of large messages must not stay in memory. Fits 100 000 characters. */
    static final int KEPT_BYTES = 128 * 1024;

    static final int FIRST_BYTES = 256;

    static final VarHandle NEXT;

    static {
        try {
            NEXT = MethodHandles.lookup().findVarHandle(Outbound.class, "next", Outbound.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    volatile @Nullable Outbound next;

    /** Type and flags, without {@link Wire#MORE}. */
    int head;

    int id;
    final ByteBuf body;

    /** Set in {@link #leaving}: stays on the heap, whatever its size, until the socket takes more. */
    boolean waits;

    /** True once the first fragment has left: the next is a {@link Wire#PART}. */
    boolean begun;

    /** {@link Turns} sets it when the message is added there: which others it takes turns with. */
    byte size;

    /** {@link Turns} sets it while the message waits there: what has not left of it. */
    int waitingBytes;

    Outbound() {
        this(Unpooled.buffer(FIRST_BYTES));
    }

    Outbound(ByteBuf body) {
        this.body = body;
    }

    /** Called on the event loop before the first byte leaves; false drops the message. */
    abstract boolean leaving();

    /** Called on the event loop before the first byte of a message leaves that had to wait for the socket. */
    void begins() {}

    /** Called on the event loop when the last byte stands in the socket's buffer. */
    abstract void left();

    /**
     * Copies the body with its header, as one frame. The length of one that a thread writes itself takes at most two
     * bytes.
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

    /** By itself a message goes by the event loop. */
    @Override
    public boolean leavesHere() {
        return false;
    }

    /** Called on the event loop, or after its end on any thread, when the connection closed before the message began to leave. */
    abstract void lost();

    final void clearBody() {
        body.clear();
        if (body.capacity() > KEPT_BYTES) {
            shrinkBody();
        }
    }

    final void shrinkBody() {
        body.clear();
        body.capacity(FIRST_BYTES);
    }

    /** A frame without an owner: settings, cancel, credit, ping. */
    static class Control extends Outbound {
        Control(int head, int id, ByteBuf body) {
            super(body);
            this.head = head;
            this.id = id;
        }

        static Control empty(int head, int id) {
            return new Control(head, id, Unpooled.EMPTY_BUFFER);
        }

        @Override
        boolean leaving() {
            return true;
        }

        @Override
        void left() {}

        @Override
        void lost() {}
    }
}
