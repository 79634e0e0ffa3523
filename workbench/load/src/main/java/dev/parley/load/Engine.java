package dev.parley.load;

import com.sun.management.OperatingSystemMXBean;
import dev.parley.load.Event.Phase;
import dev.parley.model.HistogramRow;
import dev.parley.model.Load;
import dev.parley.model.TrialSpec;
import dev.parley.spi.CallException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.Consumer;
import org.HdrHistogram.Histogram;

/**
 * One trial: warm-up until latency is stable, then the window, then the last replies. Everything that happens is told as events, on the
 * calling thread.
 */
final class Engine {
    private static final long HALF_SECOND_NS = 500_000_000;
    private static final long SECOND_NS = 1_000_000_000;
    /** Void limits. Source: the project's rules of measuring, docs/measuring.md. */
    private static final double CPU_MOST = 0.8;

    private static final long LATENESS_MOST_NS = 1_000_000;
    private static final double LITTLE_OFF_MOST = 0.05;
    private static final double NOT_SENT_MOST = 0.001;

    private final Clock clock;
    private final Consumer<Event> events;

    /**
     * @param trialId for the events
     * @param callTimeout after which an unanswered request has failed: how long the end of a trial may take
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
        Outcomes warmUp = new Outcomes(limitNs);
        Outcomes window = new Outcomes(limitNs);
        try (Driver driver = driver(trial, target, warmUp)) {
            Stability stability = new Stability();
            long warmUpBeganNs = clock.nowNs();
            driver.phase(warmUp, trial.window().warmUpMost().toNanos() + SECOND_NS);
            boolean isStable = warmUp(trial, driver, warmUp, stability);
            long warmUpMs = (clock.nowNs() - warmUpBeganNs) / 1_000_000;

            events.accept(new Event.Progress(trial.trialId(), Phase.WINDOW, 0, 0, 0, 0, driver.inFlight()));
            long cpuBeforeNs = cpuNs();
            driver.phase(window, trial.window().length().toNanos());
            long windowBeganNs = clock.nowNs();
            Seconds seconds = new Seconds(trial.trialId(), window);
            window(trial, driver, seconds, windowBeganNs);
            driver.stop();
            long windowNs = clock.nowNs() - windowBeganNs;
            long cpuNs = cpuNs() - cpuBeforeNs;

            awaitLastReplies(trial, driver);
            for (int left = driver.inFlight(); left > 0; left--) {
                window.failed(
                        new CallException(
                                CallException.Code.DEADLINE_EXCEEDED, "never ended, not even by its time-out"),
                        windowBeganNs,
                        clock.nowNs());
            }
            // the last second has what was sent in the window and ended after it, so that seconds add up to what was
            // due
            seconds.take();
            seconds.end(events);
            finish(trial, window, seconds.all, windowNs, warmUpMs, isStable, (double) cpuNs / windowNs);
        }
    }

    private Driver driver(Trial trial, Target target, Outcomes first) {
        return switch (trial.load()) {
            case Load.Closed closed -> new ClosedDriver(closed.clients(), target, clock, first);
            case Load.Open open -> new OpenDriver(open, target, clock, trial.seed(), trial.inFlightMost());
            case Load other -> throw new dev.parley.model.BadInput("load", other, "closed or open");
        };
    }

    private boolean warmUp(Trial trial, Driver driver, Outcomes outcomes, Stability stability)
            throws InterruptedException {
        long beganNs = clock.nowNs();
        long leastNs = trial.window().warmUpLeast().toNanos();
        long mostNs = trial.window().warmUpMost().toNanos();
        Histogram interval = null;
        for (int i = 1; ; i++) {
            clock.awaitNs(Math.min(beganNs + i * HALF_SECOND_NS, beganNs + mostNs));
            long elapsedNs = clock.nowNs() - beganNs;
            interval = outcomes.responseInterval(interval);
            progress(trial, Phase.WARM_UP, elapsedNs, interval, HALF_SECOND_NS, outcomes, driver);
            stability.interval(interval.getTotalCount() == 0 ? 0 : interval.getMean());
            if (elapsedNs >= leastNs && stability.isStable()) {
                return true;
            }
            if (elapsedNs >= mostNs) {
                return false;
            }
        }
    }

    private void window(Trial trial, Driver driver, Seconds seconds, long beganNs) throws InterruptedException {
        long lengthNs = trial.window().length().toNanos();
        long atNs = 0;
        while (atNs < lengthNs) {
            long nextNs = Math.min(atNs + HALF_SECOND_NS, lengthNs);
            clock.awaitNs(beganNs + nextNs);
            Histogram interval = seconds.take();
            progress(trial, Phase.WINDOW, nextNs, interval, nextNs - atNs, seconds.outcomes, driver);
            atNs = nextNs;
            if (atNs % SECOND_NS == 0 && atNs < lengthNs) {
                seconds.end(events);
            }
        }
    }

    /** The window second by second. One thread. */
    private static final class Seconds {
        private final int trialId;
        private final Outcomes outcomes;
        private final Histogram all = new Histogram(Outcomes.DIGITS);
        private final Histogram second = new Histogram(Outcomes.DIGITS);
        private Histogram interval;
        private Outcomes.Counts countsBefore;
        private int index;

        Seconds(int trialId, Outcomes outcomes) {
            this.trialId = trialId;
            this.outcomes = outcomes;
            this.countsBefore = outcomes.counts();
            this.interval = outcomes.responseInterval(null);
            second.add(interval);
        }

        Histogram take() {
            interval = outcomes.responseInterval(interval);
            second.add(interval);
            return interval;
        }

        void end(Consumer<Event> events) {
            Outcomes.Counts counts = outcomes.counts();
            Outcomes.Counts since = counts.since(countsBefore);
            events.accept(new Event.Second(
                    trialId,
                    index++,
                    second.getTotalCount(),
                    since.late(),
                    since.wrong(),
                    since.failed(),
                    since.notSent(),
                    encoded(second)));
            countsBefore = counts;
            all.add(second);
            second.reset();
        }
    }

    private void progress(
            Trial trial,
            Phase phase,
            long elapsedNs,
            Histogram interval,
            long intervalNs,
            Outcomes outcomes,
            Driver driver) {
        events.accept(new Event.Progress(
                trial.trialId(),
                phase,
                elapsedNs / 1_000_000,
                interval.getTotalCount() * 1e9 / intervalNs,
                interval.getTotalCount() == 0 ? 0 : interval.getValueAtPercentile(99) / 1e6,
                outcomes.counts().sum(),
                driver.inFlight()));
    }

    /** Every request that was due gets its outcome: a reply, or its own time-out, and a second for those who forget theirs. */
    private void awaitLastReplies(Trial trial, Driver driver) throws InterruptedException {
        long untilNs = clock.nowNs() + trial.callTimeout().toNanos() + SECOND_NS;
        while (!driver.isIdle().getAsBoolean() && clock.nowNs() < untilNs) {
            clock.awaitNs(clock.nowNs() + 1_000_000);
        }
    }

    private void finish(
            Trial trial,
            Outcomes outcomes,
            Histogram all,
            long windowNs,
            long warmUpMs,
            boolean isStable,
            double cpuShare) {
        Histogram sendDelay = outcomes.sendDelays();
        Histogram service = outcomes.serviceTimes();
        tell(trial, HistogramRow.Kind.RESPONSE, all);
        tell(trial, HistogramRow.Kind.SERVICE, service);
        tell(trial, HistogramRow.Kind.SEND_DELAY, sendDelay);
        tell(trial, HistogramRow.Kind.ERROR, outcomes.errorTimes());
        Outcomes.Counts counts = outcomes.counts();
        long latenessP99Ns = sendDelay.getTotalCount() == 0 ? 0 : sendDelay.getValueAtPercentile(99);
        double littlesLaw = littlesLaw(trial.load(), all, windowNs);
        events.accept(new Event.Finished(
                trial.trialId(),
                windowNs,
                warmUpMs,
                isStable,
                all.getTotalCount(),
                counts.late(),
                counts.wrong(),
                counts.failed(),
                counts.notSent(),
                cpuShare,
                sendDelay.getTotalCount() == 0 ? 0 : sendDelay.getValueAtPercentile(50),
                latenessP99Ns,
                littlesLaw,
                voidReasons(trial.load(), counts, all.getTotalCount(), cpuShare, latenessP99Ns, littlesLaw),
                outcomes.firstFailure()));
    }

    private static double littlesLaw(Load load, Histogram all, long windowNs) {
        return load instanceof Load.Closed closed && all.getTotalCount() > 0
                ? all.getTotalCount() * all.getMean() / windowNs / closed.clients()
                : 1;
    }

    private static List<String> voidReasons(
            Load load, Outcomes.Counts counts, long replied, double cpuShare, long latenessP99Ns, double littlesLaw) {
        List<String> reasons = new ArrayList<>();
        if (cpuShare > CPU_MOST) {
            reasons.add(text("the load generator used %.0f %% of a core (at most 80 %%)", cpuShare * 100));
        }
        long latenessMostNs = load instanceof Load.Open open
                ? Math.min(LATENESS_MOST_NS, (long) (1e8 / open.perSecond()))
                : LATENESS_MOST_NS;
        if (latenessP99Ns > latenessMostNs) {
            reasons.add(text(
                    "requests were sent late, p99 %.2f ms (at most %.2f ms)",
                    latenessP99Ns / 1e6, latenessMostNs / 1e6));
        }
        // requests that failed or were late hold a client too, so the law is asked only where all succeeded
        if (counts.sum() == 0 && Math.abs(littlesLaw - 1) > LITTLE_OFF_MOST) {
            reasons.add(
                    text("Little's law is off: rate × mean latency is %.2f of the clients (0.95 to 1.05)", littlesLaw));
        }
        long due = replied + counts.sum();
        if (due == 0) {
            reasons.add("no request was due");
        } else if (counts.notSent() > NOT_SENT_MOST * due) {
            reasons.add(text("%.2f %% of requests could not be sent (at most 0.1 %%)", 100.0 * counts.notSent() / due));
        }
        if (counts.wrong() > 0) {
            reasons.add(counts.wrong() + " wrong replies");
        }
        return reasons;
    }

    private static String text(String format, Object... values) {
        return String.format(Locale.ROOT, format, values);
    }

    private void tell(Trial trial, HistogramRow.Kind kind, Histogram histogram) {
        events.accept(new Event.Distribution(trial.trialId(), kind.key(), encoded(histogram)));
    }

    private static byte[] encoded(Histogram histogram) {
        ByteBuffer buffer = ByteBuffer.allocate(histogram.getNeededByteBufferCapacity());
        return Arrays.copyOf(buffer.array(), histogram.encodeIntoCompressedByteBuffer(buffer));
    }

    private static long cpuNs() {
        return ManagementFactory.getOperatingSystemMXBean() instanceof OperatingSystemMXBean system
                ? Math.max(0, system.getProcessCpuTime())
                : 0;
    }
}
