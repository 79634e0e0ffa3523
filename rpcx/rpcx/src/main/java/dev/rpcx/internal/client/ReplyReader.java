package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import dev.rpcx.codec.Codec;
import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;

/**
 * Decodes the replies to calls of one method, and creates the error if a reply cannot be decoded. The caller's thread
 * decodes the reply to a blocking call. The event loop decodes any other reply, also the replies to both calls of a
 * {@link Hedge}.
 */
final class ReplyReader {
    /** The error of a call whose result cannot be decoded, if there is no memory to create a more precise error. */
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
     * Returns the error of a call whose result could not be decoded. The cause can be anything that a codec or a
     * constructor throws, even an {@code Error}, since the failure concerns this call alone.
     */
    static RPCXException unreadable(Throwable e) {
        try {
            return ClientCallErrors.unreadableResult(e);
        } catch (Throwable noMemory) {
            // The call has to end, even without a more precise error.
            return UNREADABLE;
        }
    }
}
