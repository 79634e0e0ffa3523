package dev.parley.spi;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/**
 * A service that can be called. Thread-safe: any number of callers may call at once, over the connections that the
 * technology's settings name.
 */
public interface Neighbour extends AutoCloseable {
    /**
     * Calls and waits, on the caller's thread (platform or virtual).
     *
     * @throws CallException if there is no reply within {@code timeout}, or any other way a call can end
     */
    <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout);

    /**
     * Calls without waiting. Technologies that are asynchronous by nature override this; for others the call waits on a
     * virtual thread. The future ends with a reply or a {@link CallException}.
     */
    default <Q extends Record, R extends Record> CompletableFuture<R> send(
            Operation<Q, R> operation, Q request, Duration timeout) {
        CompletableFuture<R> reply = new CompletableFuture<>();
        Thread.ofVirtual().start(() -> {
            try {
                reply.complete(call(operation, request, timeout));
            } catch (Throwable t) {
                reply.completeExceptionally(CallException.of(t));
            }
        });
        return reply;
    }

    /**
     * How many bytes the encoded message takes, without the protocol around it: what {@code payload_out} and
     * {@code payload_back} count. The encoder is the same as in a call.
     */
    long payloadBytes(Record message);

    /** Ends the connections. Calls in flight end with {@link CallException.Code#UNAVAILABLE}. */
    @Override
    void close();
}
