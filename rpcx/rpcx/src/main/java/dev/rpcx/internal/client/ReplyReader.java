package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import dev.rpcx.codec.Codec;
import dev.rpcx.internal.ThrowableText;
import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;

/**
 * Reads the replies of one method, and decides how a call ends if its result cannot be read. The caller's thread reads
 * the reply to a blocking call, and the event loop reads any other, including both replies of a hedge.
 */
final class ReplyReader {
    /** Error of a call whose result cannot be read, if there is no memory to create a more precise error. */
    static final RPCXException UNREADABLE =
            LocalFailure.noRoom("no memory was left for the result", RPCXException.Executed.EXECUTED);

    private final Codec<Object> result;

    ReplyReader(Codec<Object> result) {
        this.result = result;
    }

    /** Returns the codec of the result, or of the stream's items if the method's result is a stream. */
    Codec<Object> codec() {
        return result;
    }

    @Nullable
    Object read(ByteBuf reply) {
        try {
            return result.read(reply);
        } catch (Throwable e) {
            throw unreadable(e);
        }
    }

    /**
     * Returns the error of a call whose result could not be read. The codec or a constructor may even have thrown an
     * {@code Error}: the failure concerns this call alone.
     */
    static RPCXException unreadable(Throwable e) {
        try {
            return new RPCXException(
                    RPCXException.Code.INVALID,
                    "the result cannot be read: " + ThrowableText.words(e),
                    RPCXException.Executed.EXECUTED,
                    e);
        } catch (Throwable noMemory) {
            // the call has to end in any case
            return UNREADABLE;
        }
    }
}
