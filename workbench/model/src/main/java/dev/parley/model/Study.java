package dev.parley.model;

import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;

/**
 * What is asked for: technologies side by side on topologies, messages and loads. Every command that measures makes
 * one of these, from a file or from its options, and the same study gives the same plan.
 *
 * @param title what a reader calls it
 * @param offerings what is sent and how, one after the other to the same services, which are started once for all of
 *     them
 * @param effort how long each trial takes
 * @param restarts fresh starts of the services: the unit of repetition
 * @param limit a reply counts only within this time
 * @param callLimit a call without an answer has failed after this time, and what has no answer by then is not waited
 *     for
 * @param seed from which the order of trials and the messages are drawn
 * @param limits on the services, their hosts and the links between them
 * @param isAlone whether services are started anew for each message, and carry no other: what a service holds in
 *     memory depends on all that it ever carried
 * @param target that each technology meets or does not; empty where technologies are only compared
 */
public record Study(
        String title,
        List<String> technologies,
        List<Topology> topologies,
        String work,
        List<Offering> offerings,
        Effort effort,
        int restarts,
        Duration limit,
        Duration callLimit,
        long seed,
        Limits limits,
        boolean isAlone,
        Optional<Target> target) {

    /** The least that a call is given, however short the time is within which its reply counts. */
    private static final Duration MIN_CALL_LIMIT = Duration.ofSeconds(5);

    /** Load generators wait so long by default. Source: k6, Options, http timeout; Gatling, http.requestTimeout. */
    private static final Duration MAX_DEFAULT_CALL_LIMIT = Duration.ofSeconds(60);

    /** What a call is given where the study does not say: the time within which replies count, from 5 s to 60 s. */
    public static Duration defaultCallLimit(Duration limit) {
        return limit.compareTo(MIN_CALL_LIMIT) < 0
                ? MIN_CALL_LIMIT
                : limit.compareTo(MAX_DEFAULT_CALL_LIMIT) < 0 ? limit : MAX_DEFAULT_CALL_LIMIT;
    }

    /** Each of the messages under each of the loads. */
    public record Offering(List<MessageSpec> messages, List<Load> loads) {
        public Offering {
            messages = each("message", messages);
            loads = each("load", loads);
        }

        public List<MessageUnderLoad> pairs() {
            return messages.stream()
                    .flatMap(message -> loads.stream().map(load -> new MessageUnderLoad(message, load)))
                    .toList();
        }
    }

    /** One message under one load. */
    public record MessageUnderLoad(MessageSpec message, Load load) {}

    public static final int MAX_RESTARTS = 1_000;

    /** Requests that a window of an open load can be asked to hold. */
    public static final int MAX_OPEN_REQUESTS = 10_000;

    /** No time that a study names is longer: beyond it is a mistake, and far beyond it a time in ns overflows. */
    public static final Duration MAX_TIME = Duration.ofHours(720);

    /** A trial waits for its last calls, so that a longer one would hold up the run. */
    private static final Duration MAX_CALL_LIMIT = Duration.ofMinutes(30);

    /** More trials than this are a mistake in a range rather than a study: at three seconds each they take a month. */
    static final long MAX_TRIALS = 1_000_000;

    /**
     * How long each trial takes.
     *
     * @param name {@code quick}, {@code standard}, or {@code own} for any other
     * @param rehearsalLeast the least time of rehearsal after each boot, however warm the services are
     * @param rehearsal the most time of rehearsal after each boot, which ends when the services are warm for what is to
     *     be measured
     * @param warmUpLeast the least time of warm-up before each window, on top of the rehearsal
     * @param openRequests how many requests fall due in the window of an open load at the least: at a low rate the
     *     window is longer than {@code window}
     */
    public record Effort(
            String name,
            int restarts,
            Duration rehearsalLeast,
            Duration rehearsal,
            Duration warmUpLeast,
            Duration warmUpMost,
            Duration window,
            int openRequests) {
        /**
         * Three technologies with two trials a boot, over two services, take under five minutes with this on two cores.
         * There are six boots, each with some four seconds to start, eleven for its trials and at most thirty-one for
         * its rehearsal; boots that are warm early leave the rest of that time to the others. Rehearsal ends at the
         * trial's own load, so that little warm-up is left to do. A third restart would not be warm within the five
         * minutes; two give ratios and no verdict.
         */
        public static final Effort QUICK = new Effort(
                "quick",
                2,
                Duration.ofSeconds(31),
                Duration.ofMillis(200),
                Duration.ofMillis(200),
                Duration.ofSeconds(5));

        public static final Effort STANDARD = new Effort(
                "standard",
                10,
                Duration.ofSeconds(180),
                Duration.ofSeconds(15),
                Duration.ofSeconds(60),
                Duration.ofSeconds(30));

        public Effort {
            if (!name.matches("quick|standard|own")) {
                throw new BadInput("effort", name, "quick, standard, or own for any other");
            }
            if (rehearsalLeast.isNegative()) {
                throw new BadInput("rehearsal", rehearsalLeast, "0 or more");
            }
            if (rehearsal.compareTo(rehearsalLeast) < 0) {
                throw new BadInput("rehearsal at most", rehearsal, "not under the least, " + rehearsalLeast);
            }
            if (openRequests < 0 || openRequests > MAX_OPEN_REQUESTS) {
                throw new BadInput("requests of a window", openRequests, "0 to " + MAX_OPEN_REQUESTS);
            }
        }

        /** The window has one length, whatever the rate of an open load is. */
        public Effort(
                String name,
                int restarts,
                Duration rehearsalLeast,
                Duration rehearsal,
                Duration warmUpLeast,
                Duration warmUpMost,
                Duration window) {
            this(name, restarts, rehearsalLeast, rehearsal, warmUpLeast, warmUpMost, window, 0);
        }

        /** The same with more or fewer restarts. */
        public Effort with(int others) {
            return new Effort(name, others, rehearsalLeast, rehearsal, warmUpLeast, warmUpMost, window, openRequests);
        }

        /** How long a load is measured. */
        public Duration window(Load load) {
            if (load.isOpen() && load.isSteady()) {
                Duration needed = Duration.ofSeconds((long) Math.ceil(openRequests / load.amount()));
                return needed.compareTo(window) > 0 ? needed : window;
            }
            return load.ownLength().orElse(window);
        }

        /** There is no least time of rehearsal: it ends as soon as the services are warm. */
        public Effort(
                String name,
                int restarts,
                Duration rehearsal,
                Duration warmUpLeast,
                Duration warmUpMost,
                Duration window) {
            this(name, restarts, Duration.ZERO, rehearsal, warmUpLeast, warmUpMost, window);
        }
    }

    public Study {
        // A run keeps its study as YAML, which has no place for other control characters than a tab.
        if (title.isBlank() || title.chars().anyMatch(c -> Character.isISOControl(c) && c != '\t')) {
            throw new BadInput("title", title, "one line");
        }
        technologies = each("technology", technologies);
        topologies = each("topology", topologies);
        offerings = List.copyOf(offerings);
        List<MessageUnderLoad> pairs = each(
                "message and load",
                offerings.stream()
                        .flatMap(offering -> offering.pairs().stream())
                        .toList());
        if (restarts < 1 || restarts > MAX_RESTARTS) {
            throw new BadInput("restarts", restarts, "1 to " + MAX_RESTARTS);
        }
        if (!limit.isPositive()) {
            throw new BadInput("limit", limit, "longer than nothing");
        }
        if (!callLimit.isPositive() || callLimit.compareTo(MAX_CALL_LIMIT) > 0) {
            throw new BadInput("call limit", callLimit, "longer than nothing, and at most " + MAX_CALL_LIMIT);
        }
        long trials = (long) technologies.size() * topologies.size() * pairs.size() * restarts;
        if (trials > MAX_TRIALS) {
            throw new BadInput("study", trials + " trials", "at most " + MAX_TRIALS);
        }
        for (MessageUnderLoad pair : pairs) {
            Duration window = effort.window(pair.load());
            if (window.compareTo(MAX_TIME) > 0) {
                throw new BadInput(
                        "load",
                        pair.load() + " with a window of " + window.toHours() + "h",
                        "at most " + MAX_TIME.toHours() + "h");
            }
        }
        for (Topology topology : topologies) {
            limits.check(topology);
        }
        if (target.isPresent()) {
            check(target.get(), pairs, limit);
        }
    }

    /** A reply after the limit is a failure, and has no time that a condition could bound. */
    private static void check(Target target, List<MessageUnderLoad> pairs, Duration limit) {
        if (pairs.stream().noneMatch(pair -> target.isAskedOf(pair.load()))) {
            throw new BadInput(
                    "target",
                    target,
                    target.rate().isPresent()
                            ? "an open load of that rate among the loads, such as open:200:poisson"
                            : "a closed or an open load among the loads, which is the same throughout");
        }
        for (Target.Condition condition : target.conditions()) {
            if (!condition.figure().isShare() && condition.bound() > limit.toMillis()) {
                throw new BadInput(
                        "target", condition, "at most the time within which a reply counts, " + Quantity.text(limit));
            }
        }
    }

    /** A study with the default call limit for the time within which replies count, and without a target. */
    public Study(
            String title,
            List<String> technologies,
            List<Topology> topologies,
            String work,
            List<Offering> offerings,
            Effort effort,
            int restarts,
            Duration limit,
            long seed,
            Limits limits,
            boolean isAlone) {
        this(
                title,
                technologies,
                topologies,
                work,
                offerings,
                effort,
                restarts,
                limit,
                defaultCallLimit(limit),
                seed,
                limits,
                isAlone,
                Optional.empty());
    }

    /** A study in which the same services carry all messages. */
    public Study(
            String title,
            List<String> technologies,
            List<Topology> topologies,
            String work,
            List<Offering> offerings,
            Effort effort,
            int restarts,
            Duration limit,
            long seed,
            Limits limits) {
        this(title, technologies, topologies, work, offerings, effort, restarts, limit, seed, limits, false);
    }

    /** A study of each of the messages under each of the loads, and of nothing else. */
    public Study(
            String title,
            List<String> technologies,
            List<Topology> topologies,
            String work,
            List<MessageSpec> messages,
            List<Load> loads,
            Effort effort,
            int restarts,
            Duration limit,
            long seed,
            Limits limits) {
        this(
                title,
                technologies,
                topologies,
                work,
                List.of(new Offering(messages, loads)),
                effort,
                restarts,
                limit,
                seed,
                limits);
    }

    /** The same study of other technologies. */
    public Study of(List<String> others) {
        return copy(others, offerings, effort, restarts, limits, target);
    }

    /** The same with a target. */
    public Study with(Target asked) {
        return copy(technologies, offerings, effort, restarts, limits, Optional.of(asked));
    }

    /** The same within other limits. */
    public Study with(Limits others) {
        return copy(technologies, offerings, effort, restarts, others, target);
    }

    /** The same, measured for another time in each trial and as often as that effort says. */
    public Study with(Effort other) {
        return copy(technologies, offerings, other, other.restarts(), limits, target);
    }

    /** The same with other messages and loads. */
    public Study with(List<Offering> others) {
        return copy(technologies, others, effort, restarts, limits, target);
    }

    private Study copy(
            List<String> technologies,
            List<Offering> offerings,
            Effort effort,
            int restarts,
            Limits limits,
            Optional<Target> target) {
        return new Study(
                title,
                technologies,
                topologies,
                work,
                offerings,
                effort,
                restarts,
                limit,
                callLimit,
                seed,
                limits,
                isAlone,
                target);
    }

    public List<MessageSpec> messages() {
        return offerings.stream()
                .flatMap(offering -> offering.messages().stream())
                .distinct()
                .toList();
    }

    public List<Load> loads() {
        return offerings.stream()
                .flatMap(offering -> offering.loads().stream())
                .distinct()
                .toList();
    }

    /** Whether services carry one message, and so hold in memory what that message asks of them and nothing else. */
    public boolean carriesOneMessage() {
        return isAlone || messages().size() == 1;
    }

    public boolean has(MessageSpec message, Load load) {
        return offerings.stream()
                .anyMatch(offering -> offering.messages().contains(message)
                        && offering.loads().contains(load));
    }

    private static <T> List<T> each(String what, List<T> values) {
        if (values.isEmpty()) {
            throw new BadInput(what, "none", "at least one");
        }
        if (new LinkedHashSet<>(values).size() < values.size()) {
            throw new BadInput(what, values, "each once");
        }
        return List.copyOf(values);
    }
}
