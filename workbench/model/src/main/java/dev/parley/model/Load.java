package dev.parley.model;

import dev.parley.model.LoadForm.Growth;
import dev.parley.model.LoadForm.Kind;
import dev.parley.model.LoadForm.Parameter;
import dev.parley.model.LoadForm.Trait;
import java.math.BigDecimal;
import java.math.MathContext;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * How requests are offered. A closed load's next request waits for the last reply, an open load's does not; the two are
 * never shown on one axis (Schroeder, Wierman, Harchol-Balter: Open Versus Closed, NSDI 2006).
 *
 * <p>Where a trial's message is a scenario of several messages, each client, arrival, user or call carries out the
 * whole scenario, one message after the other; each is a request with an outcome of its own.
 *
 * <p>The file is long so that a form of load is one place: its data, its description, and what it is asked. See
 * docs/adding-a-load.md.
 */
public sealed interface Load {

    /**
     * Each of {@code clients} sends, waits for the reply or its time limit, and sends again, for as long as the window
     * is.
     */
    record Closed(int clients) implements Load {
        private static final LoadForm FORM = LoadForm.of(
                "closed:{clients}",
                "Clients that each send, wait for the reply, and send again.",
                "",
                List.of(new Parameter("clients", Kind.COUNT, "how many there are")),
                List.of("closed:16"),
                Set.of(Trait.STEADY),
                given -> new Closed(given.count("clients")));

        public Closed {
            LoadParameters.count("clients", clients);
        }

        @Override
        public LoadForm form() {
            return FORM;
        }

        @Override
        public Load warmUp() {
            return this;
        }

        @Override
        public double amount() {
            return clients;
        }

        @Override
        public String title() {
            return clients + (clients == 1 ? " client" : " clients") + " (closed load)";
        }

        @Override
        public String toString() {
            return "closed:" + clients;
        }
    }

    /**
     * Closed clients whose number grows after each {@code stepLength}: by {@code step} more, written {@code +10}, or to
     * {@code times} as many, written {@code x2}. The last step has {@code to} clients. Source: kazanavicius, section
     * 3.2 (10 → 200 clients, ten more every 30 s).
     */
    record Staircase(int from, int to, int step, int times, Duration stepLength) implements Load {
        private static final LoadForm FORM = LoadForm.of(
                "staircase:{from}-{to}:{step}:{every}",
                "Closed clients, a step more after each time.",
                "kazanavicius, section 3.2",
                List.of(
                        new Parameter("from", Kind.COUNT, "clients of the first step"),
                        new Parameter("to", Kind.COUNT, "clients of the last step"),
                        new Parameter(
                                "step",
                                Kind.COUNT_STEP,
                                "how many more clients each step has, such as 10, or times as many, such as x2"),
                        new Parameter("every", Kind.TIME, "length of a step")),
                List.of("staircase:10-200:+10:30s", "staircase:10-200:x2:3s"),
                Set.of(Trait.STEPPED),
                given -> {
                    Growth step = given.growth("step");
                    return new Staircase(
                            given.count("from"),
                            given.count("to"),
                            (int) step.more(),
                            (int) step.times(),
                            given.time("every"));
                });

        public Staircase {
            LoadParameters.range("clients", from, to, Math.max(step, times - 1));
            if (times < 1 || times > 1 && step != 0) {
                throw new BadInput(
                        "staircase", "x" + times + "+" + step, "either more clients a step or times as many");
            }
            LoadParameters.longer("stepLength", stepLength);
        }

        /** Even steps. */
        public Staircase(int from, int to, int step, Duration stepLength) {
            this(from, to, step, 1, stepLength);
        }

        /** How many clients each step has. */
        public List<Integer> steps() {
            List<Integer> steps = new ArrayList<>();
            // A step may be so large that the next number is beyond an int.
            for (long clients = from; clients < to; clients = clients * times + step) {
                steps.add((int) clients);
            }
            steps.add(to);
            return List.copyOf(steps);
        }

        @Override
        public LoadForm form() {
            return FORM;
        }

        @Override
        public Optional<Duration> ownLength() {
            return Optional.of(stepLength.multipliedBy(steps().size()));
        }

        @Override
        public Optional<Duration> stretch() {
            return Optional.of(stepLength);
        }

        @Override
        public Load warmUp() {
            return new Closed(from);
        }

        @Override
        public Load inTime(double factor) {
            return new Staircase(from, to, step, times, LoadParameters.times(stepLength, factor));
        }

        @Override
        public double amount() {
            return to;
        }

        @Override
        public String title() {
            return from + " to " + to + " clients, "
                    + (times == 1 ? step + " more every " : times + " times as many every ")
                    + Quantity.text(stepLength) + " (closed load)";
        }

        @Override
        public String toString() {
            return "staircase:" + from + "-" + to + ":" + (times == 1 ? "+" + step : "x" + times) + ":"
                    + Quantity.text(stepLength);
        }
    }

    /**
     * Requests fall due at {@code perSecond}, whether or not earlier ones were answered, for as long as the window is.
     */
    record Open(double perSecond, Arrivals arrivals) implements Load {
        private static final LoadForm FORM = LoadForm.of(
                "open:{per-second}:{arrivals}",
                "Requests due at a rate, whether or not earlier ones were answered.",
                "",
                List.of(new Parameter("per-second", Kind.NUMBER, "requests due a second"), LoadForm.ARRIVALS),
                List.of("open:300:poisson"),
                Set.of(Trait.OPEN, Trait.STEADY),
                given -> new Open(given.number("per-second"), given.arrivals()));

        public Open {
            LoadParameters.rate("perSecond", perSecond);
        }

        @Override
        public LoadForm form() {
            return FORM;
        }

        @Override
        public Load warmUp() {
            return this;
        }

        @Override
        public double amount() {
            return perSecond;
        }

        @Override
        public String title() {
            return LoadParameters.text(perSecond) + " requests/s (open load, " + LoadParameters.text(arrivals) + ")";
        }

        @Override
        public String toString() {
            return "open:" + LoadParameters.text(perSecond) + ":" + LoadParameters.text(arrivals);
        }
    }

    /**
     * Requests fall due at a rate that goes in a straight line from {@code from} to {@code to} a second over
     * {@code length}.
     */
    record RateRamp(double from, double to, Duration length, Arrivals arrivals) implements Load {
        private static final LoadForm FORM = LoadForm.of(
                "ramp:{from}[-{to}]:{length}:{arrivals}",
                "Requests due at a rate that grows in a straight line.",
                "",
                List.of(
                        new Parameter("from", Kind.NUMBER, "requests due a second at the beginning"),
                        new Parameter("to", Kind.NUMBER, "requests due a second at the end").orInShort("from"),
                        new Parameter("length", Kind.TIME, "how long that takes"),
                        LoadForm.ARRIVALS),
                List.of("ramp:100-1200:60s:even"),
                Set.of(Trait.OPEN),
                given ->
                        new RateRamp(given.number("from"), given.number("to"), given.time("length"), given.arrivals()));

        public RateRamp {
            LoadParameters.rate("from", from);
            LoadParameters.rate("to", to);
            LoadParameters.longer("length", length);
        }

        @Override
        public LoadForm form() {
            return FORM;
        }

        @Override
        public Optional<Duration> ownLength() {
            return Optional.of(length);
        }

        @Override
        public Load warmUp() {
            return new Open(from, arrivals);
        }

        @Override
        public Load inTime(double factor) {
            return new RateRamp(from, to, LoadParameters.times(length, factor), arrivals);
        }

        @Override
        public double amount() {
            return Math.max(from, to);
        }

        @Override
        public String title() {
            return LoadParameters.text(from) + " to " + LoadParameters.text(to) + " requests/s over "
                    + Quantity.text(length) + " (open load, " + LoadParameters.text(arrivals) + ")";
        }

        @Override
        public String toString() {
            return "ramp:" + LoadParameters.text(from) + "-" + LoadParameters.text(to) + ":" + Quantity.text(length)
                    + ":" + LoadParameters.text(arrivals);
        }
    }

    /**
     * Requests fall due at a rate that is {@code times} as high and {@code step} higher with each step, until the last
     * step has {@code to} a second: the open twin of {@link Staircase}. Requests of a step fall due for
     * {@code stepLength}, and the next step begins when all of them have ended: services that fall behind get no credit
     * for it in one step, and carry no queue into the next.
     */
    record Rates(double from, double to, double step, double times, Duration stepLength, Arrivals arrivals)
            implements Load {
        /** More steps are a mistake in the step rather than a load: at a second each they take three hours. */
        private static final int MAX_STEPS = 10_000;

        private static final double MAX_TIMES = 10_000_000;

        /** Adding and multiplying is exact to so many digits. */
        private static final MathContext DIGITS = new MathContext(15);

        private static final LoadForm FORM = LoadForm.of(
                "rates:{from}-{to}:{step}:{every}[:{arrivals}]",
                "Requests due at a rate that grows step by step; the next step begins when all of the last have ended.",
                "",
                List.of(
                        new Parameter("from", Kind.NUMBER, "requests due a second in the first step"),
                        new Parameter("to", Kind.NUMBER, "requests due a second in the last step"),
                        new Parameter(
                                "step",
                                Kind.RATE_STEP,
                                "how much higher each step is, such as 200, or times as high, such as x2"),
                        new Parameter("every", Kind.TIME, "for how long requests of a step fall due"),
                        LoadForm.ARRIVALS),
                List.of("rates:200-2000:+200:10s", "rates:100-6400:x2:5s:poisson"),
                Set.of(Trait.OPEN, Trait.STEPPED, Trait.COUNTED),
                given -> {
                    Growth step = given.growth("step");
                    return new Rates(
                            given.number("from"),
                            given.number("to"),
                            step.more(),
                            step.times(),
                            given.time("every"),
                            given.arrivals());
                });

        public Rates {
            LoadParameters.rate("from", from);
            LoadParameters.rate("to", to);
            if (to < from) {
                throw new BadInput("to", LoadParameters.text(to), "not under from, " + LoadParameters.text(from));
            }
            if (times == 1) {
                LoadParameters.rate("step", step);
            } else if (!(times > 1) || times > MAX_TIMES || step != 0) {
                throw new BadInput("step", "x" + times + "+" + step, "either a higher rate or times as high");
            }
            double steps = times == 1 ? (to - from) / step : Math.log(to / from) / Math.log(times);
            if (steps > MAX_STEPS) {
                throw new BadInput("step", times == 1 ? "+" + step : "x" + times, "at most " + MAX_STEPS + " steps");
            }
            LoadParameters.longer("stepLength", stepLength);
        }

        /** How many requests fall due a second in each step. */
        public List<Double> steps() {
            List<Double> steps = new ArrayList<>();
            for (int i = 0; rate(i) < to; i++) {
                steps.add(rate(i));
            }
            steps.add(to);
            return List.copyOf(steps);
        }

        private double rate(int i) {
            double rate = times == 1 ? from + i * step : from * Math.pow(times, i);
            return i == 0 ? from : new BigDecimal(rate).round(DIGITS).doubleValue();
        }

        @Override
        public LoadForm form() {
            return FORM;
        }

        @Override
        public Optional<Duration> ownLength() {
            return Optional.of(stepLength.multipliedBy(steps().size()));
        }

        @Override
        public Optional<Duration> stretch() {
            return Optional.of(stepLength);
        }

        @Override
        public Load warmUp() {
            return new Open(from, arrivals);
        }

        @Override
        public Load inTime(double factor) {
            return new Rates(from, to, step, times, LoadParameters.times(stepLength, factor), arrivals);
        }

        @Override
        public double amount() {
            return to;
        }

        @Override
        public String title() {
            return LoadParameters.text(from) + " to " + LoadParameters.text(to) + " requests/s, "
                    + (times == 1
                            ? LoadParameters.text(step) + " more every "
                            : LoadParameters.text(times) + " times as many every ")
                    + Quantity.text(stepLength) + " (open load, " + LoadParameters.text(arrivals) + ")";
        }

        @Override
        public String toString() {
            return "rates:" + LoadParameters.text(from) + "-" + LoadParameters.text(to) + ":"
                    + (times == 1 ? "+" + LoadParameters.text(step) : "x" + LoadParameters.text(times)) + ":"
                    + Quantity.text(stepLength) + ":" + LoadParameters.text(arrivals);
        }
    }

    /**
     * New users arrive at a rate that goes in a straight line from {@code from} to {@code to} a second, for {@code
     * length}, whether or not earlier ones are done; each carries out the scenario {@code iterations} times, message
     * after message, and leaves. Source: iwanowski (300 or 150 new users a second for 60 s, 10 or 5 times each; ramp
     * 100 → 1 200).
     */
    record Users(double from, double to, Duration length, int iterations, Arrivals arrivals, ClientUse use)
            implements Load {
        private static final LoadForm FORM = LoadForm.of(
                "users:{from}[-{to}]:{length}:{iterations}[:{arrivals}][:{client}]",
                "New users a second, each of whom does the scenario some times and leaves.",
                "iwanowski",
                List.of(
                        new Parameter("from", Kind.NUMBER, "new users a second at the beginning"),
                        new Parameter("to", Kind.NUMBER, "new users a second at the end").or("from"),
                        new Parameter("length", Kind.TIME, "for how long they come"),
                        new Parameter("iterations", Kind.COUNT, "how often each does the scenario").or("1"),
                        LoadForm.ARRIVALS,
                        LoadForm.CLIENT),
                List.of("users:300:60s:10"),
                Set.of(Trait.OPEN, Trait.OF_USERS),
                given -> new Users(
                        given.number("from"),
                        given.number("to"),
                        given.time("length"),
                        given.count("iterations"),
                        given.arrivals(),
                        given.client()));

        public Users {
            LoadParameters.rate("from", from);
            LoadParameters.rate("to", to);
            LoadParameters.longer("length", length);
            LoadParameters.count("iterations", iterations);
        }

        @Override
        public LoadForm form() {
            return FORM;
        }

        @Override
        public Optional<Duration> ownLength() {
            return Optional.of(length);
        }

        @Override
        public int scenariosEach() {
            return iterations;
        }

        @Override
        public Load inTime(double factor) {
            return new Users(from, to, LoadParameters.times(length, factor), iterations, arrivals, use);
        }

        @Override
        public double amount() {
            return Math.max(from, to);
        }

        @Override
        public String title() {
            return (from == to
                            ? LoadParameters.text(from)
                            : LoadParameters.text(from) + " to " + LoadParameters.text(to))
                    + " new users/s for " + Quantity.text(length) + ", " + iterations + " times each (open load, "
                    + LoadParameters.text(arrivals) + LoadParameters.clients(use) + ")";
        }

        @Override
        public String toString() {
            return "users:" + LoadParameters.span(from, to) + ":" + Quantity.text(length) + ":" + iterations + ":"
                    + LoadParameters.text(arrivals) + ":" + LoadParameters.text(use);
        }
    }

    /**
     * A number of users that goes from {@code from} to {@code to} over {@code length} and is held there by letting a
     * new one in whenever one has carried out the scenario {@code iterations} times. Source: iwanowski (100 or 50 users
     * held for 60 s, ramp 2 → 100).
     */
    record Held(int from, int to, Duration length, int iterations, ClientUse use) implements Load {
        private static final LoadForm FORM = LoadForm.of(
                "held:{from}[-{to}]:{length}:{iterations}[:{client}]",
                "A number of users that is held: a new one for each that leaves.",
                "iwanowski",
                List.of(
                        new Parameter("from", Kind.COUNT, "users at the beginning"),
                        new Parameter("to", Kind.COUNT, "users at the end").or("from"),
                        new Parameter("length", Kind.TIME, "for how long they are held"),
                        new Parameter("iterations", Kind.COUNT, "how often each does the scenario").or("1"),
                        LoadForm.CLIENT),
                List.of("held:100:60s:2"),
                Set.of(Trait.OF_USERS),
                given -> new Held(
                        given.count("from"),
                        given.count("to"),
                        given.time("length"),
                        given.count("iterations"),
                        given.client()));

        public Held {
            LoadParameters.count("from", from);
            LoadParameters.count("to", to);
            LoadParameters.longer("length", length);
            LoadParameters.count("iterations", iterations);
        }

        @Override
        public LoadForm form() {
            return FORM;
        }

        @Override
        public Optional<Duration> ownLength() {
            return Optional.of(length);
        }

        @Override
        public int scenariosEach() {
            return iterations;
        }

        @Override
        public Load warmUp() {
            return new Held(from, from, length, iterations, use);
        }

        @Override
        public Load inTime(double factor) {
            return new Held(from, to, LoadParameters.times(length, factor), iterations, use);
        }

        @Override
        public double amount() {
            return Math.max(from, to);
        }

        @Override
        public String title() {
            return (from == to ? "" + to : from + " to " + to) + " users held for " + Quantity.text(length) + ", "
                    + iterations + " times each (closed load" + LoadParameters.clients(use) + ")";
        }

        @Override
        public String toString() {
            return "held:" + LoadParameters.span(from, to) + ":" + Quantity.text(length) + ":" + iterations + ":"
                    + LoadParameters.text(use);
        }
    }

    /**
     * Bursts of {@code atOnce} requests that are due at one instant. When all requests of a burst have ended, the next
     * one begins, until there were {@code iterations}. Source: niswar (100 … 500 concurrent requests, ten iterations,
     * mean response time by equation 1).
     */
    record Burst(int atOnce, int iterations) implements Load {
        private static final LoadForm FORM = LoadForm.of(
                "burst:{at-once}:{iterations}",
                "Requests due at one instant; when all have ended, the next.",
                "niswar",
                List.of(
                        new Parameter("at-once", Kind.COUNT, "requests of a burst"),
                        new Parameter("iterations", Kind.COUNT, "how many bursts there are").or("1")),
                List.of("burst:500:10"),
                Set.of(Trait.COUNTED, Trait.OF_ONE_NUMBER),
                given -> new Burst(given.count("at-once"), given.count("iterations")));

        public Burst {
            LoadParameters.count("atOnce", atOnce);
            LoadParameters.count("iterations", iterations);
        }

        @Override
        public LoadForm form() {
            return FORM;
        }

        @Override
        public Load warmUp() {
            return new Closed(Math.min(atOnce, WARM_UP_CLIENTS));
        }

        @Override
        public double amount() {
            return atOnce;
        }

        @Override
        public String title() {
            return atOnce + " requests at once, " + iterations + " times (closed load)";
        }

        @Override
        public String toString() {
            return "burst:" + atOnce + ":" + iterations;
        }
    }

    /**
     * One pair of a {@link Grid}: {@code requests} calls handed to a new pool of {@code threads}, timed from before the
     * pool is made until a latch says all have ended; {@code rounds} times, the first of which is told but not counted.
     * A round that takes longer than {@code roundLimit} has failed. Source: zhang, pseudocode of the client-side
     * testing program, and its section on cleaning.
     */
    record Rounds(int threads, int requests, int rounds, Duration roundLimit, ClientUse use) implements Load {
        private static final LoadForm FORM = LoadForm.of(
                "rounds:{threads}x{requests}:{rounds}:{round-limit}:{client}",
                "Requests handed to a pool of threads, some rounds, the first not counted.",
                "zhang, pseudocode of the client-side testing program",
                List.of(
                        new Parameter("threads", Kind.COUNT, "threads of the pool"),
                        new Parameter("requests", Kind.COUNT, "requests of a round"),
                        new Parameter("rounds", Kind.COUNT, "how many rounds there are").or("10"),
                        new Parameter("round-limit", Kind.TIME, "longest time that a round may take").or("600s"),
                        LoadForm.CLIENT),
                List.of("rounds:10x100:10:600s:shared"),
                Set.of(Trait.COUNTED, Trait.OF_ONE_NUMBER),
                given -> new Rounds(
                        given.count("threads"),
                        given.count("requests"),
                        given.count("rounds"),
                        given.time("round-limit"),
                        given.client()));

        public Rounds {
            LoadParameters.count("threads", threads);
            LoadParameters.count("requests", requests);
            LoadParameters.count("rounds", rounds);
            if (rounds < 2) {
                throw new BadInput("rounds", rounds, "2 or more, since the first is not counted");
            }
            LoadParameters.longer("roundLimit", roundLimit);
        }

        @Override
        public LoadForm form() {
            return FORM;
        }

        @Override
        public Load warmUp() {
            return new Closed(Math.min(threads, WARM_UP_CLIENTS));
        }

        @Override
        public Load inTime(double factor) {
            return new Rounds(threads, requests, rounds, LoadParameters.times(roundLimit, factor), use);
        }

        @Override
        public double amount() {
            return threads * 1e6 + requests;
        }

        @Override
        public String title() {
            return requests + " requests by " + threads + " threads, " + rounds + " rounds (closed load"
                    + LoadParameters.clients(use) + ")";
        }

        @Override
        public String toString() {
            return "rounds:" + threads + "x" + requests + ":" + rounds + ":" + Quantity.text(roundLimit) + ":"
                    + LoadParameters.text(use);
        }
    }

    /**
     * Searches for the highest rate, from {@code from} to {@code to} a second, at which the percentile of the response
     * time of all due requests still is at most {@code latency}; a request without a right reply counts as one that
     * took forever. Each rate is tried for {@code tryLength}, Poisson arrivals, and is too high when two tries in a row
     * miss; the search ends when the highest rate that met the latency and the lowest that is too high are within 5 %
     * of each other.
     */
    record HighestRate(double from, double to, double percentile, Duration latency, Duration tryLength)
            implements Load {
        private static final LoadForm FORM = LoadForm.of(
                "highest:{from}[-{to}]:p{percentile}:{latency}:{try}",
                "Searches for the highest rate whose percentile of response time is within a latency.",
                "",
                List.of(
                        new Parameter("from", Kind.NUMBER, "lowest rate that is tried"),
                        new Parameter("to", Kind.NUMBER, "highest rate that is tried").orInShort("from"),
                        new Parameter("percentile", Kind.NUMBER, "percentile that is held against the latency")
                                .or("99"),
                        new Parameter("latency", Kind.TIME, "what the percentile may come to"),
                        new Parameter(
                                        "try",
                                        Kind.TIME,
                                        "length of a try; a rate is too high when two tries in a row miss")
                                .or("5s")),
                List.of("highest:100-20000:p99:50ms:5s"),
                Set.of(Trait.OPEN, Trait.COUNTED, Trait.SEARCH),
                given -> new HighestRate(
                        given.number("from"),
                        given.number("to"),
                        given.number("percentile"),
                        given.time("latency"),
                        given.time("try")));

        public HighestRate {
            LoadParameters.rate("from", from);
            LoadParameters.rate("to", to);
            if (to < from) {
                throw new BadInput("to", LoadParameters.text(to), "not under from, " + LoadParameters.text(from));
            }
            if (!(percentile > 0) || !(percentile < 100)) {
                throw new BadInput("percentile", percentile, "between 0 and 100, such as 99");
            }
            LoadParameters.longer("latency", latency);
            LoadParameters.longer("tryLength", tryLength);
        }

        @Override
        public LoadForm form() {
            return FORM;
        }

        @Override
        public Optional<Duration> stretch() {
            return Optional.of(tryLength);
        }

        @Override
        public Load inTime(double factor) {
            return new HighestRate(from, to, percentile, latency, LoadParameters.times(tryLength, factor));
        }

        @Override
        public double amount() {
            return to;
        }

        @Override
        public String title() {
            return "highest rate with p" + LoadParameters.text(percentile) + " ≤ " + Quantity.text(latency)
                    + " (open load, poisson)";
        }

        @Override
        public String toString() {
            return "highest:" + LoadParameters.text(from) + "-" + LoadParameters.text(to) + ":p"
                    + LoadParameters.text(percentile) + ":" + Quantity.text(latency) + ":" + Quantity.text(tryLength);
        }
    }

    /**
     * Every number of threads with every number of requests, each pair a load of its own. Source: zhang (threads 10 …
     * 990, requests 10 … 900, ten rounds, over 600 s failed).
     *
     * @param use shared, or a client for each call
     */
    record Grid(Range threads, Range requests, int rounds, Duration roundLimit, ClientUse use) {
        private static final LoadForm FORM = LoadForm.ofSeveral(
                "grid:{threads}:{requests}:{rounds}:{round-limit}:{client}",
                "Rounds for every pair of threads and requests.",
                "zhang, pseudocode of the client-side testing program",
                List.of(
                        new Parameter(
                                "threads",
                                Kind.RANGE,
                                "threads of the pool, such as 10, 10-990+100 or {from, to, step}"),
                        new Parameter("requests", Kind.RANGE, "requests of a round, in the same form"),
                        new Parameter("rounds", Kind.COUNT, "how many rounds there are").or("10"),
                        new Parameter("round-limit", Kind.TIME, "longest time that a round may take").or("600s"),
                        LoadForm.CLIENT),
                List.of("grid:10-990+100:10-900+200:10:600s:shared"),
                given -> new Grid(
                                given.range("threads"),
                                given.range("requests"),
                                given.count("rounds"),
                                given.time("round-limit"),
                                given.client())
                        .pairs());

        public Grid {
            long pairs = (long) threads.values().size() * requests.values().size();
            if (pairs > Study.MAX_TRIALS) {
                throw new BadInput(
                        "grid", threads + ":" + requests + " of " + pairs + " loads", "at most " + Study.MAX_TRIALS);
            }
        }

        public List<Load> pairs() {
            List<Load> pairs = new ArrayList<>();
            for (int thread : threads.values()) {
                for (int request : requests.values()) {
                    pairs.add(new Rounds(thread, request, rounds, roundLimit, use));
                }
            }
            return List.copyOf(pairs);
        }

        @Override
        public String toString() {
            return "grid:" + threads + ":" + requests + ":" + rounds + ":" + Quantity.text(roundLimit) + ":"
                    + LoadParameters.text(use);
        }
    }

    /**
     * {@code from}, then {@code step} more each time, and always {@code to} as the last. Written {@code 10-990+100}.
     */
    record Range(int from, int to, int step) {
        public Range {
            LoadParameters.range("range", from, to, step);
        }

        public List<Integer> values() {
            List<Integer> values = new ArrayList<>();
            // A step may be so large that the next value is beyond an int.
            for (long value = from; value < to; value += step) {
                values.add((int) value);
            }
            values.add(to);
            return List.copyOf(values);
        }

        @Override
        public String toString() {
            return from + "-" + to + "+" + step;
        }
    }

    /** How an open load's requests are spread over time. */
    enum Arrivals {
        EVEN,
        POISSON
    }

    /** Which client, with its connections or its channel, sends a request. */
    enum ClientUse {
        /** One client for all. */
        SHARED,
        /** One for each user, closed when the user leaves. */
        PER_USER,
        /** One for each call, closed after it. */
        PER_CALL
    }

    /** The descriptions of all forms, in the order in which they are told. */
    static List<LoadForm> forms() {
        return List.of(
                Closed.FORM,
                Staircase.FORM,
                Open.FORM,
                RateRamp.FORM,
                Rates.FORM,
                Users.FORM,
                Held.FORM,
                Burst.FORM,
                Rounds.FORM,
                Grid.FORM,
                HighestRate.FORM);
    }

    /**
     * Reads the form that {@link #toString} writes: {@code closed:16}, {@code open:300:poisson},
     * {@code staircase:10-200:+10:30s}.
     */
    static Load parse(String text) {
        List<Load> loads = parseAll(text);
        if (loads.size() != 1) {
            throw new BadInput("load", text, "one load and not " + loads.size());
        }
        return loads.getFirst();
    }

    /**
     * Like {@link #parse}; and a grid, written {@code grid:10-990+100:10-900+200:10:600s:shared}, gives all of its
     * pairs.
     */
    static List<Load> parseAll(String text) {
        return LoadForm.read(text);
    }

    /** Its description. */
    LoadForm form();

    /** True where latency runs from the intended send time and no request waits for the reply to another user's. */
    default boolean isOpen() {
        return form().is(Trait.OPEN);
    }

    /** True where the load asks for the same throughout, so that latency has a level to be on. */
    default boolean isSteady() {
        return form().is(Trait.STEADY);
    }

    /** True where the load holds one number of clients or requests a second after the other, each told on its own. */
    default boolean isStepped() {
        return form().is(Trait.STEPPED);
    }

    /** True where the load consists of users, who come, carry out their scenario and leave. */
    default boolean hasUsers() {
        return form().is(Trait.OF_USERS);
    }

    /** True where the load is over when its work is done, however long that takes. */
    default boolean isCounted() {
        return form().is(Trait.COUNTED);
    }

    /** True where the load is a fixed number of requests, however fast they are answered. */
    default boolean isOfOneNumber() {
        return form().is(Trait.OF_ONE_NUMBER);
    }

    /** True where what the load asks for next hangs on how the last went. */
    default boolean isSearch() {
        return form().is(Trait.SEARCH);
    }

    /** True where the load keeps up a number of clients, each of which sends again when its reply has come. */
    default boolean keepsClients() {
        return !isOpen() && !isCounted();
    }

    /**
     * How long the load itself says that it lasts; empty where the trial's window says it ({@link Closed},
     * {@link Open}), and where it is over when its work is done ({@link Burst}, {@link Rounds}, {@link HighestRate}).
     */
    default Optional<Duration> ownLength() {
        return Optional.empty();
    }

    /**
     * True where the load says how many requests there are a second: throughput is the load's own then, and no figure
     * of a technology that keeps up with it.
     */
    default boolean hasRate() {
        return isOpen() && !isSearch();
    }

    /** How long each step or try is, or all of a load that has neither; empty where the load does not say. */
    default Optional<Duration> stretch() {
        return ownLength();
    }

    /** How often a user carries out the scenario before it leaves; 1 where the load does not speak of users. */
    default int scenariosEach() {
        return 1;
    }

    /**
     * The load of the warm-up: the load's own beginning, held; or a few clients, where users of the load would stay in
     * the system beyond the beginning of the window.
     */
    default Load warmUp() {
        return new Closed(WARM_UP_CLIENTS);
    }

    /** The most clients that warm up a counted load, a load of arriving users, or a search. */
    int WARM_UP_CLIENTS = 16;

    /** The same load in a form that takes {@code factor} of the time; counts and rates stay. */
    default Load inTime(double factor) {
        return this;
    }

    /** What loads of a kind are put in order by: clients, users, threads or requests a second, the most there are. */
    double amount();

    /** In words, with "open load" or "closed load" among them: a closed-loop figure is never taken for an open one. */
    String title();
}
