package dev.parley.load;

import dev.parley.model.Load.Arrivals;
import dev.parley.model.Load.ClientUse;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * One pacer lets requests or users in when they are due, whether or not earlier ones are done. Catch-up policy: what is
 * late is sent at once, in order, and its lateness recorded; what cannot be sent because too many are in flight is
 * counted as not sent and never sent later.
 */
final class OpenDriver implements Driver {
    private static final long PIECE_NS = 5_000_000;

    private final Settings settings;
    private final Sender sender;
    private final Caller caller;
    private final Clock clock;
    private final BlockingQueue<Handed> next = new ArrayBlockingQueue<>(1);
    private final AtomicInteger visits = new AtomicInteger();
    private final Thread pacer;
    private volatile boolean isCut;
    private volatile boolean isStopped;
    private volatile boolean isPacing;

    /** Stretches begun so far: each draws arrivals of its own. Pacer only. */
    private int stretches;

    /** A stretch, and word that it has begun. */
    private record Handed(Stretch stretch, CountDownLatch begun) {}

    /** @param inFlightMost requests or users under way at once */
    record Settings(Arrivals arrivals, int iterations, ClientUse use, long seed, int inFlightMost) {}

    OpenDriver(Settings settings, Target target, Clock clock) {
        this.settings = settings;
        this.sender = new Sender(target, settings.iterations(), clock);
        this.caller = new Caller(target, settings.use(), new Occupancy(), clock);
        this.clock = clock;
        this.pacer = Thread.ofPlatform().name("pacer").daemon().start(this::pace);
    }

    /** A warm-up of unknown length is given the most it may take, and cut short by the next stretch. */
    @Override
    public void begin(Stretch stretch) {
        isCut = true; // ends the stretch under way
        isPacing = true;
        try {
            Handed handed = new Handed(stretch, new CountDownLatch(1));
            next.put(handed);
            handed.begun().await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void pace() {
        clock.sharpen();
        try {
            while (true) {
                Handed handed = next.take();
                isCut = false;
                handed.stretch().beganNs = clock.nowNs();
                handed.begun().countDown();
                pace(handed.stretch());
            }
        } catch (InterruptedException closed) {
            isPacing = false;
        }
    }

    private void pace(Stretch stretch) throws InterruptedException {
        long seed = Schedule.derived(settings.seed(), stretches++);
        Schedule schedule = new Schedule(stretch.from, stretch.to, stretch.scheduleNs, settings.arrivals(), seed);
        for (long i = 0; ; i++) {
            long offsetNs = schedule.offsetNs(i);
            if (offsetNs == Schedule.NEVER) {
                break;
            }
            long dueNs = stretch.beganNs + offsetNs;
            // in pieces, so that the next stretch need not wait for an arrival far away
            for (long now = clock.nowNs(); dueNs - now > PIECE_NS && !isCut; now = clock.nowNs()) {
                clock.restNs(now + PIECE_NS);
            }
            if (!isCut) {
                clock.awaitNs(dueNs);
            }
            if (isCut) {
                return;
            }
            letIn(stretch.outcomes, dueNs);
        }
        isPacing = false;
    }

    private void letIn(Outcomes outcomes, long dueNs) {
        if (inFlight() >= settings.inFlightMost()) {
            outcomes.due(sender.places());
            outcomes.notSent(sender.places());
        } else if (settings.use() == ClientUse.SHARED) {
            sender.arrive(outcomes, dueNs);
        } else {
            // connecting may take time, which the pacer has not
            visits.incrementAndGet();
            outcomes.sent(dueNs, clock.nowNs());
            Thread.ofVirtual().start(() -> visit(outcomes));
        }
    }

    private void visit(Outcomes outcomes) {
        long done = 0;
        try {
            done = caller.visit(
                    (int) Thread.currentThread().threadId(), settings.iterations(), () -> outcomes, () -> !isStopped);
        } catch (InterruptedException closed) {
            Thread.currentThread().interrupt();
        } catch (RuntimeException e) {
            outcomes.due(1);
            outcomes.failed(e, clock.nowNs(), clock.nowNs());
            done++;
        } finally {
            long left = sender.places() - done;
            if (left > 0) {
                outcomes.due(left);
                outcomes.notSent(left);
            }
            visits.decrementAndGet();
        }
    }

    @Override
    public boolean isDone() {
        return isIdle();
    }

    @Override
    public long doneNs() {
        return clock.nowNs();
    }

    @Override
    public int inFlight() {
        return sender.underWay() + visits.get();
    }

    /** The schedule ends by itself; what is due is still sent. */
    @Override
    public void stop() {}

    @Override
    public boolean isIdle() {
        return !isPacing && inFlight() == 0;
    }

    @Override
    public void close() {
        isStopped = true;
        isCut = true;
        sender.stop();
        pacer.interrupt();
    }
}
