package dev.parley.load;

import dev.parley.spi.CallException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;

/** n clients, a thread each, each waiting for its reply before it sends again. A request belongs to the phase in which it was sent. */
final class ClosedDriver implements Driver {
    /** After a failure a client rests this long: a refused connection costs microseconds, and would be counted a million times. */
    private static final long REST_AFTER_FAILURE_NS = 10_000_000;

    private final Target target;
    private final Clock clock;
    private final List<Thread> clients = new ArrayList<>();
    private final AtomicInteger inFlight = new AtomicInteger();
    private final AtomicLong index = new AtomicLong();
    private volatile Outcomes outcomes;
    private volatile boolean isStopped;

    ClosedDriver(int clientCount, Target target, Clock clock, Outcomes first) {
        this.target = target;
        this.clock = clock;
        this.outcomes = first;
        for (int i = 0; i < clientCount; i++) {
            clients.add(Thread.ofPlatform().name("client-" + (i + 1)).daemon().start(this::callOnEnd));
        }
    }

    private void callOnEnd() {
        try {
            while (!isStopped) {
                Outcomes mine = outcomes;
                long sentNs = clock.nowNs();
                inFlight.incrementAndGet();
                try {
                    boolean isRight = target.call(index.getAndIncrement());
                    mine.answered(isRight, sentNs, sentNs, clock.nowNs());
                } catch (CallException e) {
                    mine.failed(e, sentNs, clock.nowNs());
                    clock.awaitNs(clock.nowNs() + REST_AFTER_FAILURE_NS);
                } finally {
                    inFlight.decrementAndGet();
                }
            }
        } catch (InterruptedException told) {
            // close() no longer waits for this client
        } catch (RuntimeException | Error unexpected) {
            // a client that ended in silence would lower the load without a word
            outcomes.failed(unexpected, clock.nowNs(), clock.nowNs());
        }
    }

    @Override
    public void phase(Outcomes next, long lengthNs) {
        outcomes = next;
    }

    @Override
    public int inFlight() {
        return inFlight.get();
    }

    @Override
    public void stop() {
        isStopped = true;
    }

    @Override
    public BooleanSupplier isIdle() {
        return () -> clients.stream().noneMatch(Thread::isAlive);
    }

    @Override
    public void close() {
        stop();
        clients.forEach(Thread::interrupt);
    }
}
