package dev.parley.transport.rabbitmq;

import dev.parley.encoding.json.JsonCodec;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** Calls one service through its queue. The first call connects, and the first call after a loss connects again. */
final class RabbitMqNeighbour implements Neighbour {
    private final String caller;
    private final Wiring wiring;
    private final Location.AtBroker to;

    /** Null before the first call. Guarded by this. */
    private @Nullable CompletableFuture<RabbitMqConnection> connection;

    /** Guarded by this. */
    private boolean closed;

    RabbitMqNeighbour(String caller, Wiring wiring, Location.AtBroker to) {
        this.caller = caller;
        this.wiring = wiring;
        this.to = to;
    }

    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        CompletableFuture<RabbitMqMessage> reply = exchange(operation, request);
        try {
            return reply.get(timeout.toNanos(), TimeUnit.NANOSECONDS).reply(operation.reply());
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
                .handle((message, thrown) -> {
                    if (thrown == null) {
                        return message.reply(operation.reply());
                    }
                    throw thrown instanceof TimeoutException
                            ? CallException.late(to, timeout)
                            : CallException.unreached(to, thrown);
                });
    }

    /** Cancelling or ending the reply in any way takes the call out of the table of those in flight. */
    private CompletableFuture<RabbitMqMessage> exchange(Operation<?, ?> operation, Record request) {
        CompletableFuture<RabbitMqMessage> reply = new CompletableFuture<>();
        connection().whenComplete((open, thrown) -> {
            if (thrown == null) {
                open.send(operation, request, reply);
            } else {
                reply.completeExceptionally(thrown);
            }
        });
        return reply;
    }

    private synchronized CompletableFuture<RabbitMqConnection> connection() {
        if (closed) {
            return CompletableFuture.failedFuture(
                    new CallException(Code.UNAVAILABLE, "the client of " + to + " is closed"));
        }
        if (connection == null || lost(connection)) {
            connection = CompletableFuture.supplyAsync(
                    () -> RabbitMqConnection.open(caller, wiring, to),
                    // opening waits for the broker
                    task -> Thread.ofVirtual().name("rabbitmq-open").start(task));
        }
        return connection;
    }

    private static boolean lost(CompletableFuture<RabbitMqConnection> connection) {
        return connection.isCompletedExceptionally()
                || connection.isDone() && connection.join().isLost();
    }

    @Override
    public long payloadBytes(Record message) {
        return JsonCodec.encode(message).length;
    }

    @Override
    public void close() {
        CompletableFuture<RabbitMqConnection> open;
        synchronized (this) {
            closed = true;
            open = connection;
        }
        if (open != null) {
            // one that is being opened is closed as soon as it is open
            open.thenAccept(RabbitMqConnection::close);
        }
    }
}
