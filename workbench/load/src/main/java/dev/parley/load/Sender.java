package dev.parley.load;

import dev.parley.spi.CallException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Sends without waiting. An arrival carries out the scenario {@code iterations} times, each request when the last has
 * ended, on whichever thread learns of that end. One object a request; a request ends once, whatever is told of it
 * later.
 */
final class Sender {
    private final Target target;
    private final Clock clock;
    private final int places;
    private final AtomicLong index = new AtomicLong();
    private final AtomicInteger underWay = new AtomicInteger();
    private volatile boolean isStopped;

    Sender(Target target, int iterations, Clock clock) {
        this.target = target;
        this.clock = clock;
        this.places = iterations * target.requests();
    }

    int underWay() {
        return underWay.get();
    }

    /** Requests that one arrival makes. */
    int places() {
        return places;
    }

    /** Arrivals under way send nothing more; their remaining requests are not sent. */
    void stop() {
        isStopped = true;
    }

    /** An arrival that was due at {@code dueNs}. Never waits, unless the target does. */
    void arrive(Outcomes outcomes, long dueNs) {
        underWay.incrementAndGet();
        outcomes.due(places);
        outcomes.entered(dueNs);
        long nowNs = clock.nowNs();
        outcomes.sent(dueNs, nowNs);
        go(new InFlight(outcomes, dueNs, dueNs, nowNs, 0, index.getAndIncrement()));
    }

    private void go(InFlight first) {
        InFlight request = first;
        while (true) {
            try {
                target.send(request.place % target.requests(), request.scenario, request);
            } catch (RuntimeException e) {
                request.ended(false, e);
            }
            if (request.compareAndSet(InFlight.SENDING, InFlight.SENT)) {
                return;
            }
            // it has ended already: the next goes out from here and not from within it, or scenarios would pile up the
            // stack
            InFlight next = request.next();
            if (next == null) {
                return;
            }
            request = next;
        }
    }

    private final class InFlight extends AtomicInteger implements Target.Asker {
        private static final long serialVersionUID = 1;
        private static final int SENDING = 0;
        private static final int SENT = 1;
        private static final int ENDED = 2;

        private final transient Outcomes outcomes;
        private final long arrivedNs;
        private final long dueNs;
        private final long sentNs;
        private final int place;
        private final long scenario;

        InFlight(Outcomes outcomes, long arrivedNs, long dueNs, long sentNs, int place, long scenario) {
            this.outcomes = outcomes;
            this.arrivedNs = arrivedNs;
            this.dueNs = dueNs;
            this.sentNs = sentNs;
            this.place = place;
            this.scenario = scenario;
        }

        @Override
        public void ended(boolean isRight, @Nullable Throwable failure) {
            long nowNs = clock.nowNs();
            int before = getAndSet(ENDED);
            if (before == ENDED) {
                outcomes.toldTwice();
                return;
            }
            outcomes.left(nowNs);
            if (failure != null) {
                outcomes.failed(CallException.of(failure), dueNs, nowNs);
            } else {
                outcomes.answered((int) Thread.currentThread().threadId(), isRight, dueNs, sentNs, nowNs);
            }
            if (before == SENT) {
                InFlight next = next();
                if (next != null) {
                    go(next);
                }
            }
        }

        /** What this arrival sends next; null when it is done. */
        private @Nullable InFlight next() {
            int nextPlace = place + 1;
            if (nextPlace < places && !isStopped) {
                long nowNs = clock.nowNs();
                outcomes.entered(nowNs);
                return new InFlight(
                        outcomes,
                        arrivedNs,
                        nowNs,
                        nowNs,
                        nextPlace,
                        nextPlace % target.requests() == 0 ? index.getAndIncrement() : scenario);
            }
            if (nextPlace < places) {
                outcomes.notSent(places - nextPlace);
            } else if (places > 1) {
                outcomes.scenario(clock.nowNs() - arrivedNs);
            }
            underWay.decrementAndGet();
            return null;
        }
    }
}
