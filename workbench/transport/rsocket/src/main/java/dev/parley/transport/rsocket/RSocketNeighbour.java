package dev.parley.transport.rsocket;

import dev.parley.encoding.json.JsonCodec;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import io.rsocket.Payload;
import io.rsocket.RSocket;
import io.rsocket.core.RSocketConnector;
import io.rsocket.frame.decoder.PayloadDecoder;
import io.rsocket.transport.netty.client.TcpClientTransport;
import io.rsocket.util.DefaultPayload;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.netty.resources.LoopResources;
import reactor.netty.tcp.TcpClient;

/** Calls one service over one connection. */
final class RSocketNeighbour implements Neighbour {
    private final Location to;
    private final RSocketConnector connector;
    private final TcpClientTransport transport;

    /** One connection uses one event loop. */
    private final LoopResources loop = LoopResources.create("rsocket-client", 1, true);

    /** The connection, or the one that is being opened; replaced by the call that finds it lost or failed. */
    private final AtomicReference<@Nullable CompletableFuture<RSocket>> connection = new AtomicReference<>();

    private final ConcurrentHashMap<CompletableFuture<byte[]>, Boolean> inFlight = new ConcurrentHashMap<>();
    private volatile boolean closed;

    /** @param zeroCopy whether a reply is read where the network put it */
    RSocketNeighbour(Location to, boolean zeroCopy) {
        this.to = to;
        this.connector =
                RSocketConnector.create().payloadDecoder(zeroCopy ? PayloadDecoder.ZERO_COPY : PayloadDecoder.DEFAULT);
        this.transport = TcpClientTransport.create(
                TcpClient.create().host(to.host()).port(to.port()).runOn(loop));
    }

    /** Not an {@code RSocketClient}: that one keeps a refused connection's error for every later call. */
    private CompletableFuture<RSocket> connection() {
        CompletableFuture<RSocket> current = connection.get();
        if (current != null && !isOver(current)) {
            return current;
        }
        CompletableFuture<RSocket> fresh = new CompletableFuture<>();
        if (!connection.compareAndSet(current, fresh)) {
            return connection();
        }
        connector.connect(transport).subscribe(fresh::complete, fresh::completeExceptionally);
        return fresh;
    }

    private static boolean isOver(CompletableFuture<RSocket> connection) {
        return connection.isDone()
                && (connection.isCompletedExceptionally() || connection.join().isDisposed());
    }

    private CompletableFuture<byte[]> exchange(Operation<?, ?> operation, Record request) {
        if (closed) {
            return CompletableFuture.failedFuture(gone());
        }
        CompletableFuture<byte[]> reply = Mono.fromFuture(connection(), true)
                .flatMap(connected -> connected.requestResponse(DefaultPayload.create(
                        JsonCodec.encode(request), operation.name().getBytes(StandardCharsets.UTF_8))))
                .map(RSocketNeighbour::taken)
                .toFuture();
        inFlight.put(reply, true);
        reply.whenComplete((done, thrown) -> inFlight.remove(reply));
        if (closed) {
            reply.completeExceptionally(gone());
        }
        return reply;
    }

    private static byte[] taken(Payload payload) {
        try {
            byte[] body = new byte[payload.data().readableBytes()];
            payload.data().getBytes(payload.data().readerIndex(), body);
            return body;
        } finally {
            payload.release();
        }
    }

    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        CompletableFuture<byte[]> reply = exchange(operation, request);
        try {
            return JsonCodec.decode(reply.get(timeout.toNanos(), TimeUnit.NANOSECONDS), operation.reply());
        } catch (ExecutionException e) {
            throw Errors.read(e.getCause() == null ? e : e.getCause());
        } catch (TimeoutException e) {
            reply.cancel(true);
            throw CallException.late(to, timeout);
        } catch (InterruptedException e) {
            reply.cancel(true);
            Thread.currentThread().interrupt();
            throw new CallException(Code.UNAVAILABLE, "interrupted while waiting for " + to, e);
        }
    }

    @Override
    public <Q extends Record, R extends Record> CompletableFuture<R> send(
            Operation<Q, R> operation, Q request, Duration timeout) {
        CompletableFuture<byte[]> reply = exchange(operation, request);
        return reply.copy().orTimeout(timeout.toNanos(), TimeUnit.NANOSECONDS).handle((body, thrown) -> {
            if (thrown == null) {
                return JsonCodec.decode(body, operation.reply());
            }
            Throwable cause = thrown.getCause() == null ? thrown : thrown.getCause();
            if (thrown instanceof TimeoutException || cause instanceof TimeoutException) {
                reply.cancel(true);
                throw CallException.late(to, timeout);
            }
            throw Errors.read(thrown instanceof java.util.concurrent.CompletionException ? cause : thrown);
        });
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
        if (closed) {
            return;
        }
        closed = true;
        inFlight.keySet().forEach(reply -> reply.completeExceptionally(gone()));
        CompletableFuture<RSocket> last = connection.get();
        if (last != null) {
            last.whenComplete((connected, failed) -> {
                if (connected != null) {
                    connected.dispose();
                }
            });
        }
        RSocketServing.end(loop);
    }
}
