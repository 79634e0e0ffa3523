package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import dev.rpcx.codec.Codec;
import dev.rpcx.internal.ThrowableText;
import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;

/**
 * Reads the replies of one method, and says how a call ends whose result cannot be read. On the thread of a caller that
 * blocks for its one call, otherwise, as for each call of a hedge, on the event loop.
 */
final class ReplyReader {
    /** Error of a call whose result cannot be read, where there is no memory to make a more precise one. */
    static final RPCXException UNREADABLE =
            LocalFailure.noRoom("no memory was left for the result", RPCXException.Executed.EXECUTED);

    private final Codec<Object> result;

    ReplyReader(Codec<Object> result) {
        this.result = result;
    }

    /** Codec of the result, or of the items of the stream that the method brings. */
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
     * Error of a call for whose result the codec or a constructor has thrown something, an {@code Error} included: the
     * failure belongs to this call alone.
     */
    static RPCXException unreadable(Throwable e) {
        try {
            return new RPCXException(
                    RPCXException.Code.INVALID,
                    "the result cannot be read: " + ThrowableText.words(e),
                    RPCXException.Executed.EXECUTED,
                    e);
        } catch (Throwable noMemory) {
            // the call has to end all the same
            return UNREADABLE;
        }
    }
}
