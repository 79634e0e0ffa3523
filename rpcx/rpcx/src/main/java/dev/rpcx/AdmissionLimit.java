package dev.rpcx;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * How many handlers of one server run at once. What says that there are too many is the callers' own time: while handlers end too late for
 * their callers the limit sinks by a quarter every 100 ms, while it is reached and all end in time it rises. So what is taken is finished
 * in time, and the rest is refused at once, which costs next to nothing, instead of everything being served too late.
 * Source: additive increase, multiplicative decrease, as in Chiu and Jain, 1989.
 *
 * <p>Handlers on the event loop need no limit: there is one a loop.
 */
final class AdmissionLimit {
    static final int LEAST = 8;
    private static final long STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final int most;
    private final AtomicInteger running = new AtomicInteger();
    private final AtomicLong nextStep = new AtomicLong(System.nanoTime());
    private volatile int limit;

    /** @param most the limit while nothing is late; from {@link #LEAST} */
    AdmissionLimit(int most) {
        this.most = most;
        this.limit = most;
    }

    /** @return false if the call has to be refused */
    boolean enter() {
        if (running.incrementAndGet() <= limit) {
            return true;
        }
        running.decrementAndGet();
        return false;
    }

    /** Each that has entered leaves once. */
    void leave(long deadlineNanos) {
        int before = running.getAndDecrement();
        int now = limit;
        long time = System.nanoTime();
        if (time - deadlineNanos >= 0) {
            if (isStep(time)) {
                limit = Math.max(LEAST, Math.min(now, before) * 3 / 4);
            }
        } else if (now < most && before >= now - 1 && isStep(time)) {
            limit = Math.min(most, now + Math.max(1, now / 10));
        }
    }

    private boolean isStep(long time) {
        long next = nextStep.get();
        return time - next >= 0 && nextStep.compareAndSet(next, time + STEP_NANOS);
    }

    int limit() {
        return limit;
    }

    int running() {
        return running.get();
    }
}
