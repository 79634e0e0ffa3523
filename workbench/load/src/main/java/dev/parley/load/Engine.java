package dev.parley.load;

import dev.parley.model.HistogramRow;
import dev.parley.model.Load;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Event;
import dev.parley.protocol.Event.Phase;
import dev.parley.spi.CallException;
import java.time.Duration;
import java.util.function.Consumer;
import org.HdrHistogram.Histogram;

/**
 * One trial: warm-up until latency is stable, then the window stretch by stretch, then the last replies. Everything
 * that happens is told as events, on the calling thread.
 */
final class Engine {
    private static final long HALF_SECOND_NS = 500_000_000;
    private static final long SECOND_NS = 1_000_000_000;
    /** How often a stretch that says itself when it is done is asked. */
    private static final long ASK_NS = 1_000_000;
    /** The longest that the last users of a load may take for the rest of their scenario. */
    private static final long MAX_PATIENCE_NS = 600 * SECOND_NS;

    private final Clock clock;
    private final Consumer<Event> events;

    /**
     * @param trialId for the events
     * @param callTimeout after which an unanswered request has failed: how long the end of a trial may take
     * @param inFlightMost requests, or users of an open load, under way at once
     */
    record Trial(
            int trialId,
            Load load,
            TrialSpec.Window window,
            Duration limit,
            Duration callTimeout,
            int inFlightMost,
            long seed) {}

    Engine(Clock clock, Consumer<Event> events) {
        this.clock = clock;
        this.events = events;
    }

    void run(Trial trial, Target target) throws InterruptedException {
        long limitNs = trial.limit().toNanos();
        Load load = trial.load();
        Outcomes warmUp = new Outcomes(limitNs);
        Teller teller = new Teller(trial.trialId());
        Occupancy occupancy = new Occupancy();
        Driver driver = Script.driver(load.warmUp(), trial, target, occupancy, clock, warmUp);
        try {
            long warmUpBeganNs = clock.nowNs();
            boolean isStable = warmUp(trial, driver, warmUp, teller);
            if (!load.warmUp().equals(load)) {
                end(trial, driver);
                driver = Script.driver(load, trial, target, occupancy, clock, warmUp);
            }
            long warmUpMs = (clock.nowNs() - warmUpBeganNs) / 1_000_000;

            events.accept(new Event.Progress(trial.trialId(), Phase.WINDOW, 0, 0, 0, 0, driver.inFlight()));
            long cpuBeforeNs = OwnCpu.ns();
            Tally tally = new Tally(trial.trialId(), events);
            Script script = new Script(load, trial.window().length().toNanos(), limitNs, patienceNs(trial, target));
            Edges edges = new Edges(trial.trialId(), warmUp, target, tally);
            long windowBeganNs = window(trial, driver, script, tally, occupancy, teller, edges);
            long windowEndedNs = clock.nowNs();
            occupancy.end(windowEndedNs);
            double cpuShare = (double) (OwnCpu.ns() - cpuBeforeNs) / (windowEndedNs - windowBeganNs);
            driver.stop();
            if (!load.isCounted()) {
                // The clients went on until they were stopped: that time is the window's, with what they sent in it.
                windowEndedNs = clock.nowNs();
                tally.extendLast(windowEndedNs);
            }
            teller.tell(Phase.LAST_REPLIES, windowEndedNs - windowBeganNs, tally.takeUntold(), tally.counts(), driver);
            if (!load.isOpen()) {
                edges.end();
            }

            long lastReplyNs = awaitLastReplies(trial, driver, tally);
            if (load.isOpen()) {
                edges.end();
                // What fell due in the window is answered after it where the services are behind: its rate is over that
                // time too.
                tally.extendLast(lastReplyNs);
                windowEndedNs = Math.max(windowEndedNs, lastReplyNs);
            }
            tally.closeAll(
                    load.isCounted(),
                    clock.nowNs(),
                    new CallException(CallException.Code.DEADLINE_EXCEEDED, "never ended, not even by its time-out"));
            events.accept(new Event.Uncounted(
                    trial.trialId(), warmUp.sent() + target.entering(), warmUp.answered() + target.entered()));
            long windowNs = load.isCounted() ? tally.countedNs() : windowEndedNs - windowBeganNs;
            finish(trial, tally, script, windowNs, warmUpMs, isStable, cpuShare, littlesLaw(load, occupancy, tally));
        } finally {
            driver.close();
        }
    }

    private static long patienceNs(Trial trial, Target target) {
        long requestsEach = (long) trial.load().scenariosEach() * target.requests();
        return Math.min(MAX_PATIENCE_NS, (trial.callTimeout().toNanos() + SECOND_NS) * Math.min(1000, requestsEach));
    }

    private boolean warmUp(Trial trial, Driver driver, Outcomes outcomes, Teller teller) throws InterruptedException {
        long leastNs = trial.window().warmUpLeast().toNanos();
        long mostNs = trial.window().warmUpMost().toNanos();
        if (mostNs == 0) {
            return false;
        }
        Stretch stretch = stretch(trial.load().warmUp(), mostNs + SECOND_NS, outcomes);
        driver.begin(stretch);
        teller.begin(stretch.beganNs);
        Stability stability = new Stability();
        Histogram interval = new Histogram(Outcomes.DIGITS);
        for (int i = 1; ; i++) {
            clock.restNs(stretch.beganNs + Math.min(i * HALF_SECOND_NS, mostNs));
            long elapsedNs = clock.nowNs() - stretch.beganNs;
            interval.reset();
            outcomes.takeResponses(interval);
            teller.tell(Phase.WARM_UP, elapsedNs, interval, outcomes.counts(), driver);
            stability.interval(interval.getTotalCount() == 0 ? 0 : interval.getMean());
            if (elapsedNs >= leastNs && stability.isStable()) {
                return true;
            }
            if (elapsedNs >= mostNs) {
                return false;
            }
        }
    }

    /** A warm-up goes on for as long as it needs, whatever length its load has. */
    private static Stretch stretch(Load warmUp, long lengthNs, Outcomes outcomes) {
        return Stretch.held("warm-up", warmUp.amount(), lengthNs, outcomes);
    }

    /** The warm-up's driver ends before another takes its place. */
    private void end(Trial trial, Driver driver) throws InterruptedException {
        driver.stop();
        if (driver instanceof OpenDriver) {
            driver.close();
        }
        awaitLastReplies(trial, driver);
        driver.close();
    }

    /** Returns when it began. */
    private long window(
            Trial trial, Driver driver, Script script, Tally tally, Occupancy occupancy, Teller teller, Edges edges)
            throws InterruptedException {
        boolean isCounted = trial.load().isCounted();
        Stretch stretch = script.next(null);
        if (stretch == null) {
            throw new IllegalStateException(trial.load() + " has no stretch");
        }
        edges.beginBefore(stretch);
        driver.begin(stretch);
        long beganNs = stretch.beganNs;
        occupancy.begin(beganNs);
        teller.begin(beganNs);
        long tickNs = 0;
        long halfNs = trial.load().isSteady() ? beganNs + script.lengthNs() / 2 : Long.MAX_VALUE;
        while (true) {
            tally.open(stretch);
            // after the next has begun: telling takes time, and clients do not wait for it
            tally.closeSettled(isCounted);
            // A stretch has its whole length from its own beginning: one that begins late is not cut short, since its
            // rate is a count over its time.
            long endNs = stretch.isUntilDone() ? Long.MAX_VALUE : stretch.beganNs + stretch.lengthNs;
            while (clock.nowNs() < endNs && !(stretch.isUntilDone() && driver.isDone()) && !stretch.isCut) {
                long nextNs = beganNs + tickNs + HALF_SECOND_NS;
                if (clock.nowNs() >= nextNs) {
                    tickNs += HALF_SECOND_NS;
                    tick(trial, driver, tally, tickNs, script.lengthNs(), teller);
                } else if (clock.nowNs() >= halfNs) {
                    halfNs = Long.MAX_VALUE;
                    tally.endFirstHalf();
                } else if (stretch.isUntilDone()) {
                    cutIfTooLong(stretch, driver);
                    clock.restNs(Math.min(nextNs, clock.nowNs() + ASK_NS));
                } else {
                    clock.restNs(Math.min(Math.min(nextNs, halfNs), endNs));
                }
            }
            stretch.endedNs = endNs != Long.MAX_VALUE ? endNs : stretch.isCut ? clock.nowNs() : driver.doneNs();
            if (isCounted) {
                long lastReplyNs = awaitLastReplies(trial, driver, tally);
                if (trial.load().isOpen()) {
                    stretch.endedNs = Math.max(stretch.endedNs, lastReplyNs);
                }
            }
            Stretch next = script.next(stretch);
            if (next == null) {
                return beganNs;
            }
            edges.beginBefore(next);
            driver.begin(next);
            if (!isCounted) {
                // Clients go on between two steps, and what they send there belongs to the one before: so does that
                // time.
                stretch.endedNs = next.beganNs;
            }
            stretch = next;
        }
    }

    private static void tick(Trial trial, Driver driver, Tally tally, long tickNs, long lengthNs, Teller teller) {
        Histogram untold = tally.takeUntold();
        Outcomes.Counts counts = tally.counts();
        teller.tell(Phase.WINDOW, tickNs, untold, counts, driver);
        tally.watch(counts, driver.inFlight());
        // the last second has what was sent in the window and ended after it, so that seconds add up to what was due
        if (!trial.load().isCounted() && tickNs % SECOND_NS == 0 && tickNs < lengthNs) {
            tally.endSecond();
        }
    }

    private void cutIfTooLong(Stretch stretch, Driver driver) {
        long lastDueNs = stretch.beganNs + stretch.scheduleNs;
        if (clock.nowNs() - lastDueNs > stretch.patienceNs) {
            stretch.isCut = true;
            driver.stop();
        }
    }

    /** Tells how a trial goes. A rate that it tells is a count over its own time, however long that is. */
    private final class Teller {
        private final int trialId;
        private long toldNs;

        Teller(int trialId) {
            this.trialId = trialId;
        }

        /** What is told next is of the time from here on. */
        void begin(long nowNs) {
            toldNs = nowNs;
        }

        /** @param untold right replies since this was last called */
        void tell(Phase phase, long elapsedNs, Histogram untold, Outcomes.Counts counts, Driver driver) {
            long nowNs = clock.nowNs();
            long replies = untold.getTotalCount();
            events.accept(new Event.Progress(
                    trialId,
                    phase,
                    elapsedNs / 1_000_000,
                    replies == 0 ? 0 : replies * 1e9 / Math.max(1, nowNs - toldNs),
                    replies == 0 ? 0 : untold.getValueAtPercentile(99) / 1e6,
                    counts.sum(),
                    driver.inFlight()));
            toldNs = nowNs;
        }
    }

    /**
     * Tells the edges between which processes are measured, each with the replies of the trial until then. What a
     * request costs is what was used between the edges over the replies that came between them, whichever stretch their
     * requests fell due in: those of the warm-up that are under way at the first edge are answered after it.
     */
    private final class Edges {
        private final int trialId;
        private final Outcomes warmUp;
        private final Target target;
        private final Tally tally;
        private boolean isBegun;

        Edges(int trialId, Outcomes warmUp, Target target, Tally tally) {
            this.trialId = trialId;
            this.warmUp = warmUp;
            this.target = target;
            this.tally = tally;
        }

        /** The first edge lies before the first stretch that counts. */
        void beginBefore(Stretch stretch) {
            if (!isBegun && stretch.isCounted) {
                begin();
            }
        }

        private void begin() {
            isBegun = true;
            events.accept(new Event.ProbeBegins(trialId, answered()));
        }

        void end() {
            if (!isBegun) {
                // A load whose first stretch was cut has none that counts.
                begin();
            }
            events.accept(new Event.ProbeEnds(trialId, answered()));
        }

        private long answered() {
            tally.take();
            return warmUp.answered() + target.entered() + tally.answered();
        }
    }

    /**
     * Waits until every request that was due has its outcome: a reply, or its own time-out, and a second more for those
     * who forget theirs.
     */
    private void awaitLastReplies(Trial trial, Driver driver) throws InterruptedException {
        long untilNs = clock.nowNs() + trial.callTimeout().toNanos() + SECOND_NS;
        while (!driver.isIdle() && clock.nowNs() < untilNs) {
            clock.restNs(clock.nowNs() + ASK_NS);
        }
    }

    /** Does the same, takes the replies into the tally, and returns when the last right one came, to a millisecond. */
    private long awaitLastReplies(Trial trial, Driver driver, Tally tally) throws InterruptedException {
        long untilNs = clock.nowNs() + trial.callTimeout().toNanos() + SECOND_NS;
        tally.take();
        long lastReplyNs = clock.nowNs();
        boolean isIdle;
        do {
            isIdle = driver.isIdle() || clock.nowNs() >= untilNs;
            if (!isIdle) {
                clock.restNs(clock.nowNs() + ASK_NS);
            }
            if (tally.take().getTotalCount() > 0) {
                lastReplyNs = clock.nowNs();
            }
        } while (!isIdle);
        return lastReplyNs;
    }

    private static double littlesLaw(Load load, Occupancy occupancy, Tally tally) {
        // requests of rounds wait for a thread of their pool, which does not belong to their time
        double share = load instanceof Load.Rounds ? 1 : load.keepsClients() ? occupancy.share() : tally.littlesLaw();
        // clients that never came back have failed requests to show for it
        return Double.isNaN(share) ? 0 : share;
    }

    private void finish(
            Trial trial,
            Tally tally,
            Script script,
            long windowNs,
            long warmUpMs,
            boolean isStable,
            double cpuShare,
            double littlesLaw) {
        Histogram sendDelay = tally.sendDelay();
        tell(trial, HistogramRow.Kind.RESPONSE, tally.responses());
        tell(trial, HistogramRow.Kind.SERVICE, tally.service());
        tell(trial, HistogramRow.Kind.SEND_DELAY, sendDelay);
        tell(trial, HistogramRow.Kind.ERROR, tally.error());
        if (tally.isHalved()) {
            tell(trial, HistogramRow.Kind.FIRST_HALF, tally.firstHalf());
            tell(trial, HistogramRow.Kind.SECOND_HALF, tally.secondHalf());
        }
        Outcomes.Counts counts = tally.counts();
        long latenessP99Ns = sendDelay.getTotalCount() == 0 ? 0 : sendDelay.getValueAtPercentile(99);
        long replied = tally.responses().getTotalCount();
        VoidReasons reasons = new VoidReasons(
                trial.load(),
                counts,
                replied,
                tally.wrongAnywhere(),
                tally.toldTwice(),
                cpuShare,
                latenessP99Ns,
                littlesLaw);
        events.accept(new Event.Finished(
                trial.trialId(),
                windowNs,
                warmUpMs,
                isStable,
                replied,
                counts.late(),
                counts.wrong(),
                counts.failed(),
                counts.notSent(),
                cpuShare,
                sendDelay.getTotalCount() == 0 ? 0 : sendDelay.getValueAtPercentile(50),
                latenessP99Ns,
                littlesLaw,
                tally.usersAtFirstFailure(),
                script.highestMet(),
                reasons.all(),
                tally.firstFailure()));
    }

    private void tell(Trial trial, HistogramRow.Kind kind, Histogram histogram) {
        events.accept(new Event.Distribution(new HistogramRow(trial.trialId(), kind, "client", Encoded.of(histogram))));
    }
}
