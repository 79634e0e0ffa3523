package dev.parley.load;

import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;

/** A service over some technology, asked what a work's exchanges say, one for each request of the scenario. */
final class ServiceTarget implements Target {
    private final Neighbour neighbour;
    private final Supplier<Neighbour> more;
    private final boolean isOwn;
    private final List<Asked<?, ?>> requests;
    private final Entering entering;

    /** Counts what users ask while they log in. */
    private static final class Entering {
        private final LongAdder sent = new LongAdder();
        private final LongAdder answered = new LongAdder();

        /** The same service, whose calls are counted. */
        Neighbour over(Neighbour service) {
            return new Neighbour() {
                @Override
                public <Q extends Record, R extends Record> R call(
                        Operation<Q, R> operation, Q request, Duration timeout) {
                    sent.increment();
                    R reply = service.call(operation, request, timeout);
                    answered.increment();
                    return reply;
                }

                @Override
                public long payloadBytes(Record message) {
                    return service.payloadBytes(message);
                }

                /** Whoever connected it closes it. */
                @Override
                public void close() {}
            };
        }
    }

    private static final class Asked<Q extends Record, R extends Record> {
        private final Work.Exchange<Q, R> exchange;
        private final Duration timeout;
        private final Entering entering;
        private volatile boolean entered;

        Asked(Work.Exchange<Q, R> exchange, Entering entering, Duration timeout) {
            this.entering = entering;
            this.exchange = exchange;
            this.timeout = timeout;
        }

        /** Logs in before the first request, which is one that is not counted. */
        private void enter(Neighbour neighbour) {
            if (!entered) {
                synchronized (this) {
                    if (!entered) {
                        exchange.enter(entering.over(neighbour), timeout);
                        entered = true;
                    }
                }
            }
        }

        boolean call(Neighbour neighbour, long index) {
            enter(neighbour);
            Q request = exchange.request(index);
            return exchange.isRight(request, neighbour.call(exchange.operation(), request, timeout));
        }

        void send(Neighbour neighbour, long index, Asker asker) {
            enter(neighbour);
            Q request = exchange.request(index);
            // errorprone's unused future: its end is told to the asker
            var _ = neighbour
                    .send(exchange.operation(), request, timeout)
                    .whenComplete((reply, failure) ->
                            asker.ended(failure == null && exchange.isRight(request, reply), failure));
        }

        long[] payloads(Neighbour neighbour, long index) {
            enter(neighbour);
            Q request = exchange.request(index);
            R reply = neighbour.call(exchange.operation(), request, timeout);
            return new long[] {neighbour.payloadBytes(request), neighbour.payloadBytes(reply)};
        }
    }

    /** @param more connects another client to the same place */
    ServiceTarget(
            Neighbour neighbour, Supplier<Neighbour> more, List<Work.Exchange<?, ?>> exchanges, Duration timeout) {
        this(neighbour, more, exchanges, new Entering(), timeout);
    }

    private ServiceTarget(
            Neighbour neighbour,
            Supplier<Neighbour> more,
            List<Work.Exchange<?, ?>> exchanges,
            Entering entering,
            Duration timeout) {
        this(
                neighbour,
                more,
                false,
                exchanges.stream()
                        .<Asked<?, ?>>map(e -> new Asked<>(e, entering, timeout))
                        .toList(),
                entering);
    }

    private ServiceTarget(
            Neighbour neighbour,
            Supplier<Neighbour> more,
            boolean isOwn,
            List<Asked<?, ?>> requests,
            Entering entering) {
        this.entering = entering;
        this.neighbour = neighbour;
        this.more = more;
        this.isOwn = isOwn;
        this.requests = requests;
    }

    @Override
    public int requests() {
        return requests.size();
    }

    @Override
    public boolean call(int place, long index) {
        return requests.get(place).call(neighbour, index);
    }

    @Override
    public void send(int place, long index, Asker asker) {
        requests.get(place).send(neighbour, index, asker);
    }

    @Override
    public long entering() {
        return entering.sent.sum();
    }

    @Override
    public long entered() {
        return entering.answered.sum();
    }

    @Override
    public Target ownClient() {
        return new ServiceTarget(more.get(), more, true, requests, entering);
    }

    @Override
    public void close() {
        if (isOwn) {
            neighbour.close();
        }
    }

    /** Encoded bytes of one scenario's requests and of their replies, from real calls. */
    long[] payloads(long index) {
        long[] sum = new long[2];
        for (Asked<?, ?> request : requests) {
            long[] one = request.payloads(neighbour, index);
            sum[0] += one[0];
            sum[1] += one[1];
        }
        return sum;
    }
}
