package dev.parley.transport.websocketcalls;

import dev.parley.encoding.json.JsonCodec;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * Calls one service over one WebSocket, which the first call opens and the first call after a loss opens again; or over
 * a WebSocket for each call.
 */
public final class WebSocketNeighbour implements Neighbour {
    private final Location to;
    private final Connector connector;
    private final boolean closes;

    /** Connections to be ended with this neighbour. Guarded by this. */
    private final Set<CallsInFlight> opened = new HashSet<>();

    /** Null before the first call and after a loss, and always where each call has its own. Guarded by this. */
    private @Nullable CompletableFuture<CallsInFlight> kept;

    /** Guarded by this. */
    private boolean closed;

    /** Opens WebSockets to one service. Thread-safe. */
    public interface Connector extends AutoCloseable {
        /** Fails with {@link Code#UNAVAILABLE} when there is no WebSocket at that address. */
        CompletableFuture<CallsInFlight> open();

        /** Ends attempts under way, and what connections share. */
        @Override
        void close();
    }

    /** What a technology says of its connections. */
    public static String connections(boolean closes) {
        return closes
                ? "one for each call: connected, upgraded from HTTP/1.1, closed by the client after the reply"
                : "one a neighbour, shared by all callers; opened by the first call, again after a loss";
    }

    /** @param closes whether each call opens a connection of its own, and closes it after the reply */
    public WebSocketNeighbour(Location to, Connector connector, boolean closes) {
        this.to = to;
        this.connector = connector;
        this.closes = closes;
    }

    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        CompletableFuture<String> reply = exchange(operation, request);
        try {
            return Envelope.reply(reply.get(timeout.toNanos(), TimeUnit.NANOSECONDS), operation.reply());
        } catch (ExecutionException e) {
            throw CallException.unreached(to, e);
        } catch (TimeoutException e) {
            reply.cancel(false);
            throw CallException.late(to, timeout);
        } catch (InterruptedException e) {
            reply.cancel(false);
            Thread.currentThread().interrupt();
            throw new CallException(Code.UNAVAILABLE, "interrupted while waiting for " + to, e);
        }
    }

    @Override
    public <Q extends Record, R extends Record> CompletableFuture<R> send(
            Operation<Q, R> operation, Q request, Duration timeout) {
        return exchange(operation, request)
                .orTimeout(timeout.toNanos(), TimeUnit.NANOSECONDS)
                .handle((text, thrown) -> {
                    if (thrown == null) {
                        return Envelope.reply(text, operation.reply());
                    }
                    throw thrown instanceof TimeoutException
                            ? CallException.late(to, timeout)
                            : CallException.unreached(to, thrown);
                });
    }

    /** The reply's text. Cancelling or ending it in any way takes the call out of the table of those in flight. */
    private CompletableFuture<String> exchange(Operation<?, ?> operation, Record request) {
        CompletableFuture<String> reply = new CompletableFuture<>();
        connection().whenComplete((open, thrown) -> {
            if (thrown != null) {
                reply.completeExceptionally(thrown);
                return;
            }
            if (!reply.isDone()) {
                open.send(operation.name(), request, reply);
            }
            if (closes) {
                reply.whenComplete((text, failure) -> end(open));
            }
        });
        return reply;
    }

    private synchronized CompletableFuture<CallsInFlight> connection() {
        if (closed) {
            return CompletableFuture.failedFuture(gone());
        }
        if (closes) {
            return opened();
        }
        CompletableFuture<CallsInFlight> known = kept;
        if (known == null || isLost(known)) {
            known = opened();
            kept = known;
        }
        return known;
    }

    private static boolean isLost(CompletableFuture<CallsInFlight> connection) {
        return connection.isCompletedExceptionally()
                || connection.isDone() && connection.join().isLost();
    }

    private CompletableFuture<CallsInFlight> opened() {
        return connector.open().thenApply(open -> {
            synchronized (this) {
                opened.removeIf(CallsInFlight::isLost);
                if (!closed) {
                    opened.add(open);
                    return open;
                }
            }
            var _ = open.leave();
            throw gone();
        });
    }

    /** A call's own connection has served it. Nobody waits for the end. */
    private void end(CallsInFlight connection) {
        synchronized (this) {
            opened.remove(connection);
        }
        var _ = connection.leave();
    }

    private CallException gone() {
        return new CallException(Code.UNAVAILABLE, "the client of " + to + " is closed");
    }

    @Override
    public long payloadBytes(Record message) {
        return JsonCodec.encode(message).length;
    }

    @Override
    public void close() {
        List<CallsInFlight> left;
        synchronized (this) {
            closed = true;
            left = List.copyOf(opened);
            opened.clear();
        }
        left.stream().map(CallsInFlight::leave).toList().forEach(CompletableFuture::join);
        connector.close();
    }
}
