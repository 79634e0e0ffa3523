package dev.parley.load;

import dev.parley.model.Load.ClientUse;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** Carries out requests and whole users' visits on the thread that asks, and waits for each reply. Thread-safe. */
final class Caller {
    /**
     * After a failure a client rests this long: a refused connection costs microseconds, and would be counted a million
     * times.
     */
    private static final long REST_AFTER_FAILURE_NS = 10_000_000;

    private final Target target;
    private final ClientUse use;
    private final Clock clock;
    private final AtomicLong index = new AtomicLong();
    private final AtomicInteger inFlight = new AtomicInteger();
    private final Occupancy occupancy;

    Caller(Target target, ClientUse use, Occupancy occupancy, Clock clock) {
        this.occupancy = occupancy;
        this.target = target;
        this.use = use;
        this.clock = clock;
    }

    int inFlight() {
        return inFlight.get();
    }

    /**
     * One user: the scenario {@code iterations} times, request after request, for as long as {@code goesOn}.
     *
     * @param worker which recorder to write to
     * @param outcomes asked anew for each request
     * @return requests carried out
     */
    long visit(int worker, int iterations, Supplier<Outcomes> outcomes, BooleanSupplier goesOn)
            throws InterruptedException {
        long beganNs = clock.nowNs();
        long done = 0;
        Target own = use == ClientUse.PER_USER ? target.ownClient() : target;
        try {
            for (int i = 0; i < iterations; i++) {
                long scenario = index.getAndIncrement();
                for (int place = 0; place < own.requests(); place++) {
                    if (!goesOn.getAsBoolean()) {
                        return done;
                    }
                    Outcomes mine = outcomes.get();
                    mine.due(1);
                    // the first request waits for its user's own client
                    call(worker, own, place, scenario, mine, done == 0 ? beganNs : clock.nowNs());
                    done++;
                }
            }
            if (iterations * own.requests() > 1) {
                outcomes.get().scenario(clock.nowNs() - beganNs);
            }
        } finally {
            if (use == ClientUse.PER_USER) {
                own.close();
            }
        }
        return done;
    }

    /** One scenario whose requests are due already, into outcomes that know of them. */
    void callOnce(int worker, Outcomes outcomes) throws InterruptedException {
        long scenario = index.getAndIncrement();
        for (int place = 0; place < target.requests(); place++) {
            call(worker, target, place, scenario, outcomes, clock.nowNs());
        }
    }

    private void call(int worker, Target over, int place, long scenario, Outcomes outcomes, long dueNs)
            throws InterruptedException {
        inFlight.incrementAndGet();
        outcomes.entered(dueNs);
        Target own = over;
        try {
            long sentNs = clock.nowNs();
            own = use == ClientUse.PER_CALL ? over.ownClient() : over;
            boolean isRight = own.call(place, scenario);
            long nowNs = clock.nowNs();
            outcomes.left(nowNs);
            outcomes.answered(worker, isRight, dueNs, sentNs, nowNs);
        } catch (RuntimeException e) {
            long nowNs = clock.nowNs();
            outcomes.left(nowNs);
            outcomes.failed(e, dueNs, nowNs);
            clock.restNs(clock.nowNs() + REST_AFTER_FAILURE_NS);
        } finally {
            inFlight.decrementAndGet();
            occupancy.busy(dueNs, clock.nowNs());
            if (own != over) {
                own.close();
            }
        }
    }
}
