package dev.parley.load;

import dev.parley.spi.Neighbour;
import dev.parley.spi.Work;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/** A service over some technology, asked what a work's exchange says. */
final class ServiceTarget<Q extends Record, R extends Record> implements Target {
    private final Neighbour neighbour;
    private final Work.Exchange<Q, R> exchange;
    private final Duration timeout;

    ServiceTarget(Neighbour neighbour, Work.Exchange<Q, R> exchange, Duration timeout) {
        this.neighbour = neighbour;
        this.exchange = exchange;
        this.timeout = timeout;
    }

    static Target of(Neighbour neighbour, Work.Exchange<?, ?> exchange, Duration timeout) {
        return new ServiceTarget<>(neighbour, exchange, timeout);
    }

    @Override
    public boolean call(long index) {
        Q request = exchange.request(index);
        return exchange.isRight(request, neighbour.call(exchange.operation(), request, timeout));
    }

    @Override
    public CompletableFuture<Boolean> send(long index) {
        Q request = exchange.request(index);
        return neighbour
                .send(exchange.operation(), request, timeout)
                .thenApply(reply -> exchange.isRight(request, reply));
    }

    /** Encoded bytes of one request and of its reply, from a real call. */
    long[] payloads(long index) {
        Q request = exchange.request(index);
        R reply = neighbour.call(exchange.operation(), request, timeout);
        return new long[] {neighbour.payloadBytes(request), neighbour.payloadBytes(reply)};
    }
}
