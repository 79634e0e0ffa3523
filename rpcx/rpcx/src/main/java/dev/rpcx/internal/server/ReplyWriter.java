package dev.rpcx.internal.server;

import dev.rpcx.RPCXException;
import dev.rpcx.codec.CodecException;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import org.jspecify.annotations.Nullable;

/**
 * Writes the result or the error of a call into the call's own buffer, and charges a reply that is large or has to
 * wait. A reply that cannot be sent, or for which there is no room, is replaced by an error.
 *
 * <p>The thread that has the result writes the reply. If the reply cannot be sent immediately, the event loop charges
 * it again. This class has no state.
 */
final class ReplyWriter {
    private ReplyWriter() {}

    // ---- on the thread that has the result

    /** Writes a result, or the error that replaces it. */
    @SuppressWarnings("NullAway") // the codec decides whether null can be written
    static void write(ServerCall call, @Nullable Object result) {
        call.head = Wire.REPLY;
        try {
            call.method().result().write(result, call.body);
        } catch (CodecException e) {
            RPCXException.Code code = e.code() == CodecException.Code.TOO_LARGE
                    ? RPCXException.Code.TOO_LARGE
                    : RPCXException.Code.HANDLER_FAILED;
            writeUnsendable(call, code, ServerMethod.unsendable(e));
            return;
        } catch (Throwable e) {
            writeUnsendable(
                    call,
                    RPCXException.Code.HANDLER_FAILED,
                    "the result cannot be sent: " + ThrowableText.wireWords(e));
            return;
        }
        int max = call.connection.maxBytesTaken();
        if (call.body.readableBytes() > max) {
            writeTooLarge(call, max);
        }
    }

    private static void writeTooLarge(ServerCall call, int max) {
        writeUnsendable(
                call,
                RPCXException.Code.TOO_LARGE,
                "a result of " + call.body.readableBytes() + " bytes (expected: at most " + max + ")");
    }

    /**
     * Writes the error that replaces a reply which cannot be sent. If that reply says that the handler has not started,
     * the new error says so too.
     */
    private static void writeUnsendable(ServerCall call, RPCXException.Code code, String text) {
        writeError(
                call,
                call.hasBegun()
                        ? CallErrors.unsendable(code, text, call.method(), call.context())
                        : RPCXException.refused(code, text));
    }

    static void writeError(ServerCall call, RPCXException error) {
        call.clearBody();
        call.head = Wire.ERROR;
        WireError.write(call.body, error);
    }

    /**
     * Charges a reply, unless it is small. If there is no room for the reply, an error replaces it. Called on the
     * handler's thread.
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

    // ---- on the event loop

    /**
     * Charges a reply that cannot be sent completely now. This replaces the charge that the handler's thread has made.
     * If there is no room, an error replaces the reply. Does nothing if the client reads and the reply fits into one
     * frame.
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

    // ---- on either thread

    /** Replaces a reply by an error, because its caller has not read earlier replies and there is no room for more. */
    private static void refuse(ServerCall call) {
        call.shrinkBody();
        writeUnsendable(
                call,
                RPCXException.Code.OVERLOADED,
                "the reply could not be kept: too many bytes of replies wait to be read");
    }
}
