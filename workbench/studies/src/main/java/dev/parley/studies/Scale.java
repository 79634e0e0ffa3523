package dev.parley.studies;

import dev.parley.model.Limits;
import dev.parley.model.Load;
import dev.parley.model.Metric;
import dev.parley.model.Study;
import dev.parley.model.Study.Effort;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/**
 * How much of a published plan is carried out. What is compared stays as published, technologies, topologies, messages,
 * clients, rates, threads and requests; times and repetitions shrink, for all technologies alike. At the standard scale
 * a staircase has fewer steps too.
 */
public enum Scale {
    /** Enough to see the order, and where the interval is narrow to decide on it. */
    QUICK(
            "steps of 30 s cut to 60 ms, loads of 60 s to 1 s, or until 150 scenarios have begun; windows of at most 1 s; bursts and"
                    + " rounds twice, or 200 requests in all; 3 restarts",
            3,
            Duration.ofMillis(1200),
            Duration.ofMillis(100),
            Duration.ofMillis(400),
            Duration.ofSeconds(1),
            0,
            Duration.ofMillis(300),
            1 / 500.0,
            false,
            1 / 60.0,
            1 / 60.0,
            150,
            Duration.ZERO,
            2,
            2),
    /** The least that decides what claims ask for, within some two hours of two cores for each of the papers here. */
    STANDARD(
            "steps of 30 s cut to a tenth, twice the clients with each; loads of 60 s to a quarter, new users until 750"
                    + " scenarios have begun, but for 1 s or more; windows of at most 5 s, or until five requests were due;"
                    + " bursts once, or 200 requests in all; rounds as published; 5 restarts",
            5,
            Duration.ofSeconds(90),
            Duration.ofMillis(200),
            Duration.ofSeconds(1),
            Duration.ofSeconds(5),
            5,
            Duration.ofSeconds(2),
            0.1,
            true,
            0.25,
            1,
            // 3 000 requests of iwanowski's, of which its smaller stand answers some hundred a second
            750,
            Duration.ofSeconds(1),
            1,
            Integer.MAX_VALUE),
    /** To the minute. */
    PAPER(
            "as published",
            Integer.MAX_VALUE,
            Duration.ofDays(1),
            Duration.ofDays(1),
            Duration.ofDays(1),
            Duration.ofDays(1),
            0,
            Duration.ofDays(1),
            1,
            false,
            1,
            1,
            Integer.MAX_VALUE,
            Duration.ZERO,
            Integer.MAX_VALUE,
            Integer.MAX_VALUE);

    /**
     * A shorter step of a staircase is over before its clients have settled. Source: the project's rules of measuring,
     * docs/measuring.md.
     */
    private static final Duration MIN_STEP = Duration.ofSeconds(3);

    /** A rate counted over less is one of a few replies and of what was cut at its ends. */
    private static final Duration MIN_WINDOW = Duration.ofSeconds(1);

    /**
     * With fewer requests in the window of an open load nothing can show that its latency was level: a median of seven
     * values, in each half, has no interval of 95 %.
     */
    private static final int MIN_REQUESTS = 16;

    /** Bursts or rounds that make no more requests than this take no time worth saving. */
    private static final int FEW_REQUESTS = 200;

    private final String rule;
    private final int restarts;
    private final Duration rehearsalMost;
    private final Duration warmUpLeastMost;
    private final Duration warmUpMostMost;
    private final Duration windowMost;
    private final int openRequestsLeast;

    private final Duration countedMost;
    private final double stepFactor;
    private final boolean hasDoublingSteps;
    private final double lengthFactor;
    private final double usersFactor;
    private final int scenariosMost;
    private final Duration arrivalsLeast;
    private final int burstsMost;
    private final int roundsMost;

    Scale(
            String rule,
            int restarts,
            Duration rehearsalMost,
            Duration warmUpLeastMost,
            Duration warmUpMostMost,
            Duration windowMost,
            int openRequestsLeast,
            Duration countedMost,
            double stepFactor,
            boolean hasDoublingSteps,
            double lengthFactor,
            double usersFactor,
            int scenariosMost,
            Duration arrivalsLeast,
            int burstsMost,
            int roundsMost) {
        this.rule = rule;
        this.restarts = restarts;
        this.rehearsalMost = rehearsalMost;
        this.warmUpLeastMost = warmUpLeastMost;
        this.warmUpMostMost = warmUpMostMost;
        this.windowMost = windowMost;
        this.openRequestsLeast = openRequestsLeast;
        this.countedMost = countedMost;
        this.stepFactor = stepFactor;
        this.hasDoublingSteps = hasDoublingSteps;
        this.lengthFactor = lengthFactor;
        this.usersFactor = usersFactor;
        this.scenariosMost = scenariosMost;
        this.arrivalsLeast = arrivalsLeast;
        this.burstsMost = burstsMost;
        this.roundsMost = roundsMost;
    }

    /**
     * A study at a scale.
     *
     * @param loads the load that stands for each of the published ones
     */
    public record Scaled(Study study, Map<Load, Load> loads) {
        public Scaled {
            loads = Map.copyOf(loads);
        }

        /** The same on all of the machine. */
        public Scaled withoutLimits() {
            return new Scaled(study.with(Limits.NONE), loads);
        }

        /** The same with more or fewer restarts. */
        public Scaled withRestarts(int restarts) {
            return new Scaled(study.with(study.effort().with(restarts)), loads);
        }
    }

    /** By how much it scales, in words. */
    public String rule() {
        return rule;
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Number of bursts or rounds that stand for so many of the paper. */
    private static int times(int published, int most, int requestsEach) {
        return Math.min(published, Math.max(most, FEW_REQUESTS / requestsEach));
    }

    Scaled of(Study published) {
        Map<Load, Load> loads = new LinkedHashMap<>();
        published.loads().forEach(load -> loads.put(load, of(load)));
        Effort effort = published.effort();
        boolean dropsFirst = published.loads().stream().allMatch(load -> load instanceof Load.Rounds);
        boolean isCounted = published.loads().stream().allMatch(Load::isCounted);
        List<Study.Offering> offerings = published.offerings().stream()
                .map(offering -> new Study.Offering(
                        offering.messages(),
                        offering.loads().stream()
                                .map(l -> loads.getOrDefault(l, l))
                                .distinct()
                                .toList()))
                .toList();
        Effort scaled = new Effort(
                "own",
                restarts(published.restarts()),
                least(effort.rehearsalLeast(), rehearsalMost),
                least(effort.rehearsal(), rehearsalMost),
                least(effort.warmUpLeast(), warmUpLeastMost),
                // a load that drops its own first round is warmed up by it
                least(effort.warmUpMost(), dropsFirst ? warmUpLeastMost : warmUpMostMost),
                // loads that are over when their work is done have no window: about as long as they take, for the
                // estimate
                least(effort.window(), isCounted ? countedMost : windowMost),
                this == QUICK ? 0 : Math.max(effort.openRequests(), openRequestsLeast));
        return new Scaled(published.with(offerings).with(scaled), loads);
    }

    private int restarts(int published) {
        return this == PAPER ? published : restarts;
    }

    /**
     * Why figures of a load, as it stands in a scaled plan, decide nothing of the published one: too short a step or
     * window, or too few requests. Empty where they do. What belongs to a boot or to a single request, such as sizes,
     * hangs on none of this; whether anybody fails hangs on the whole length for which new users come.
     */
    public static Optional<String> undecided(Metric metric, Load published, Load scaled, Study plan) {
        if (!metric.isOfLoad()) {
            return Optional.empty();
        }
        boolean isOfFailure = metric == Metric.SUCCESS_SHARE || metric == Metric.USERS_AT_FIRST_FAILURE;
        if (isOfFailure
                && published instanceof Load.Users asPublished
                && scaled instanceof Load.Users users
                && users.length().compareTo(asPublished.length()) < 0) {
            // users who wait pile up for as long as new ones come: a shorter crowd fails later, or not at all
            return Optional.of("users come for " + users.length().toMillis() + " ms, in the paper for "
                    + asPublished.length().toMillis() + " ms, after which others fail");
        }
        if (metric == Metric.CLIENTS_AT_LIMIT && hasOtherSteps(published, scaled)) {
            // the first step that gives out says no more than that some number since the step before it does
            return Optional.of("steps other than the paper's, between which clients may give out");
        }
        return undecided(scaled, plan);
    }

    private static boolean hasOtherSteps(Load published, Load scaled) {
        return published instanceof Load.Staircase theirs
                && scaled instanceof Load.Staircase ours
                && !theirs.steps().equals(ours.steps());
    }

    private static Optional<String> undecided(Load scaled, Study plan) {
        if (scaled.isOfOneNumber()) {
            return Optional.empty();
        }
        String what =
                scaled.isStepped() ? "steps" : scaled.isSearch() ? "tries" : scaled.isSteady() ? "windows" : "loads";
        Duration least = scaled.isStepped() ? longer(MIN_STEP, plan.limit().multipliedBy(2)) : MIN_WINDOW;
        Duration window = plan.effort().window(scaled);
        return tooShort(what, scaled.stretch().orElse(window), least).or(() -> tooFew(scaled, window));
    }

    private static Optional<String> tooFew(Load scaled, Duration window) {
        double requests = scaled.amount() * window.toMillis() / 1e3;
        return !scaled.isOpen() || !scaled.isSteady() || requests >= MIN_REQUESTS
                ? Optional.empty()
                : Optional.of(String.format(
                        Locale.ROOT, "%.3g requests in a window (expected: %d or more)", requests, MIN_REQUESTS));
    }

    private static Optional<String> tooShort(String what, Duration is, Duration least) {
        return is.compareTo(least) >= 0
                ? Optional.empty()
                : Optional.of(what + " of " + is.toMillis() + " ms (expected: " + least.toMillis() + " ms or more)");
    }

    private static Duration longer(Duration a, Duration b) {
        return a.compareTo(b) > 0 ? a : b;
    }

    /**
     * Returns the load that stands for a published one. Where this scale has no rule for its form, its time alone is
     * cut. A load that is held for a window has no time of its own, and a rate is what is compared. So such a load
     * stays, and where the shorter window has too few of its requests, nothing is decided.
     */
    private Load of(Load load) {
        if (load instanceof Load.Users users) {
            return users(users);
        }
        if (load instanceof Load.Burst b) {
            return new Load.Burst(b.atOnce(), times(b.iterations(), burstsMost, b.atOnce()));
        }
        if (load instanceof Load.Rounds r) {
            return new Load.Rounds(
                    r.threads(), r.requests(), times(r.rounds(), roundsMost, r.requests()), r.roundLimit(), r.use());
        }
        if (load instanceof Load.Staircase s && hasDoublingSteps) {
            return new Load.Staircase(s.from(), s.to(), 0, 2, s.stepLength()).inTime(stepFactor);
        }
        return load.inTime(load.isStepped() ? stepFactor : lengthFactor);
    }

    /** Users who arrive faster than they are served stay until their scenarios are done, however short the time in which they arrived. */
    private Load users(Load.Users load) {
        double published = (load.from() + load.to()) / 2 * load.length().toMillis() / 1e3 * load.iterations();
        double least = (double) arrivalsLeast.toMillis() / load.length().toMillis();
        return load.inTime(Math.min(usersFactor, Math.max(least, scenariosMost / published)));
    }

    private static Duration least(Duration a, Duration b) {
        return a.compareTo(b) < 0 ? a : b;
    }

    /** The scale so called. */
    public static Optional<Scale> named(String name) {
        for (Scale scale : values()) {
            if (scale.toString().equals(name)) {
                return Optional.of(scale);
            }
        }
        return Optional.empty();
    }
}
