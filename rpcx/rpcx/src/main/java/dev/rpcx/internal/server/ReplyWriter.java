package dev.rpcx.internal.server;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.codec.CodecException;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import org.jspecify.annotations.Nullable;

/**
 * Writes the result or the error of a call into the call's buffer. A reply that is large or has to wait is charged,
 * that is, its bytes count against the server's memory limits. If a reply cannot be sent, or exceeds these limits, an
 * error takes its place.
 *
 * <p>The thread that has the result writes the reply. If the reply has to wait, the event loop charges it, and this
 * charge replaces any earlier one. This class has no state.
 */
final class ReplyWriter {
    private ReplyWriter() {}

    // ---- Methods for the thread that has the result

    /**
     * Writes the result of a call into the call's buffer, behind the metadata of the reply, if there are any and the
     * client reads them. If the result cannot be encoded or is too large, writes an error instead.
     */
    @SuppressWarnings("NullAway") // the codec throws if it cannot write null
    static void write(ServerCall call, @Nullable Object result) {
        call.head = Wire.REPLY;
        Metadata metadata = call.context().replyMetadata();
        int prelude;
        try {
            if (!metadata.isEmpty() && call.connection.readsReplyMetadata()) {
                call.head = Wire.REPLY | Wire.METADATA;
                MetadataFields.write(call.body, metadata);
            }
            prelude = call.body.readableBytes();
            call.method().result().write(result, call.body);
        } catch (CodecException e) {
            boolean isTooLarge = e.code() == CodecException.Code.TOO_LARGE;
            if (!isTooLarge) {
                call.connection.logFailure(call.method(), call.id, ServerCallErrors.RESULT, e);
            }
            writeUnsendable(
                    call,
                    isTooLarge ? RPCXException.Code.TOO_LARGE : RPCXException.Code.HANDLER_FAILED,
                    ServerMethod.unsendable(e));
            return;
        } catch (Throwable e) {
            call.connection.logFailure(call.method(), call.id, ServerCallErrors.RESULT, e);
            writeUnsendable(
                    call, RPCXException.Code.HANDLER_FAILED, ServerCallErrors.UNSENDABLE + ThrowableText.wireWords(e));
            return;
        }
        int max = call.connection.maxBytesTaken();
        int bytes = call.body.readableBytes() - prelude;
        if (bytes > max) {
            writeUnsendable(
                    call,
                    RPCXException.Code.TOO_LARGE,
                    "a result of " + bytes + " bytes (expected: at most " + max + ")");
        }
    }

    /** Writes an error in place of a reply that cannot be sent. The error says whether the handler has run. */
    private static void writeUnsendable(ServerCall call, RPCXException.Code code, String text) {
        writeError(
                call,
                call.hasBegun()
                        ? ServerCallErrors.unsendable(code, text, call.method(), call.context())
                        : RPCXException.refused(code, text));
    }

    static void writeError(ServerCall call, RPCXException error) {
        call.clearBody();
        call.head = Wire.ERROR;
        WireError.write(call.body, error);
    }

    /**
     * Charges a large reply: counts {@link ServerCall#replyBytes} against the server's memory limits. If the limits
     * leave no room, replaces the reply by an error. Does nothing if the reply's buffer is small. Also does nothing if
     * {@code replyBytes} is small, for example because the buffer is already charged. Small means at most
     * {@code UnchargedAllowance.bodyBytes}. Called on the thread that has the result, if that thread is not the event
     * loop.
     */
    static void charge(ServerCall call) {
        int uncharged = call.connection.uncharged.bodyBytes();
        if (call.body.capacity() <= uncharged) {
            return;
        }
        long bytes = call.replyBytes();
        if (bytes > uncharged) {
            if (!call.charges().reply.add(bytes)) {
                refuse(call);
            }
            call.connection.replyHeld();
        }
    }

    // ---- Methods for the event loop

    /**
     * Counts the bytes of a reply against the server's memory limits, if the client does not read at present or the
     * reply does not fit into one frame. Such a reply may have to wait. This charge replaces the charge for the
     * request, and any charge for the reply that the handler's thread has made. If the limits leave no room, replaces
     * the reply by an error.
     */
    static void chargeIfItWaits(ServerCall call) {
        int bytes = call.body.readableBytes();
        boolean reads = call.connection.channel.isWritable();
        if (reads && bytes <= Wire.MAX_PAYLOAD_BYTES) {
            return;
        }
        call.giveUpRequest(!reads);
        if (call.charges().reply.set(call.replyBytes())) {
            call.holdUntilWritable = true;
            call.connection.replyHeld();
        } else {
            refuse(call);
        }
    }

    // ---- Methods for either thread

    /**
     * Replaces a reply by the error OVERLOADED, because too many bytes of replies already wait for callers to read
     * them.
     */
    private static void refuse(ServerCall call) {
        call.shrinkBody();
        writeUnsendable(call, RPCXException.Code.OVERLOADED, ServerCallErrors.REPLY_NOT_KEPT);
    }
}
