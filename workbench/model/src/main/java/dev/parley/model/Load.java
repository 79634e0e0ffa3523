package dev.parley.model;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * How requests are offered. A closed load's next request waits for the last reply, an open load's does not; the two are
 * never shown on one axis (Schroeder, Wierman, Harchol-Balter: Open Versus Closed, NSDI 2006).
 *
 * <p>Where a trial's message is a scenario of several steps, each client, arrival, user or call carries out the whole
 * scenario, one step after the other; each step is a request with an outcome of its own.
 */
public sealed interface Load {

    /**
     * Each of {@code clients} sends, waits for the reply or its time limit, and sends again, for as long as the window
     * is.
     */
    record Closed(int clients) implements Load {
        public Closed {
            LoadForm.count("clients", clients);
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
        public Staircase {
            LoadForm.range("clients", from, to, Math.max(step, times - 1));
            if (times < 1 || times > 1 && step != 0) {
                throw new BadInput(
                        "staircase", "x" + times + "+" + step, "either more clients a step or times as many");
            }
            LoadForm.longer("stepLength", stepLength);
        }

        /** Even steps. */
        public Staircase(int from, int to, int step, Duration stepLength) {
            this(from, to, step, 1, stepLength);
        }

        /** How many clients each step has. */
        public List<Integer> steps() {
            List<Integer> steps = new ArrayList<>();
            for (int clients = from; clients < to; clients = clients * times + step) {
                steps.add(clients);
            }
            steps.add(to);
            return List.copyOf(steps);
        }

        @Override
        public String toString() {
            return "staircase:" + from + "-" + to + ":" + (times == 1 ? "+" + step : "x" + times) + ":"
                    + LoadForm.text(stepLength);
        }
    }

    /**
     * Requests fall due at {@code perSecond}, whether or not earlier ones were answered, for as long as the window is.
     */
    record Open(double perSecond, Arrivals arrivals) implements Load {
        public Open {
            LoadForm.rate("perSecond", perSecond);
        }

        @Override
        public String toString() {
            return "open:" + LoadForm.text(perSecond) + ":" + LoadForm.text(arrivals);
        }
    }

    /**
     * Requests fall due at a rate that goes in a straight line from {@code from} to {@code to} a second over
     * {@code length}.
     */
    record RateRamp(double from, double to, Duration length, Arrivals arrivals) implements Load {
        public RateRamp {
            LoadForm.rate("from", from);
            LoadForm.rate("to", to);
            LoadForm.longer("length", length);
        }

        @Override
        public String toString() {
            return "ramp:" + LoadForm.text(from) + "-" + LoadForm.text(to) + ":" + LoadForm.text(length) + ":"
                    + LoadForm.text(arrivals);
        }
    }

    /**
     * New users arrive at a rate that goes in a straight line from {@code from} to {@code to} a second, for
     * {@code length}, whether or not earlier ones are done; each carries out the scenario {@code iterations} times,
     * step after step, and leaves. Source: iwanowski (300 or 150 new users a second for 60 s, 10 or 5 times each; ramp
     * 100 → 1 200).
     */
    record Users(double from, double to, Duration length, int iterations, Arrivals arrivals, ClientUse use)
            implements Load {
        public Users {
            LoadForm.rate("from", from);
            LoadForm.rate("to", to);
            LoadForm.longer("length", length);
            LoadForm.count("iterations", iterations);
        }

        @Override
        public String toString() {
            return "users:" + LoadForm.span(from, to) + ":" + LoadForm.text(length) + ":" + iterations + ":"
                    + LoadForm.text(arrivals) + ":" + LoadForm.text(use);
        }
    }

    /**
     * A number of users that goes from {@code from} to {@code to} over {@code length} and is held there by letting a
     * new one in whenever one has carried out the scenario {@code iterations} times. Source: iwanowski (100 or 50 users
     * held for 60 s, ramp 2 → 100).
     */
    record Held(int from, int to, Duration length, int iterations, ClientUse use) implements Load {
        public Held {
            LoadForm.count("from", from);
            LoadForm.count("to", to);
            LoadForm.longer("length", length);
            LoadForm.count("iterations", iterations);
        }

        @Override
        public String toString() {
            return "held:" + LoadForm.span(from, to) + ":" + LoadForm.text(length) + ":" + iterations + ":"
                    + LoadForm.text(use);
        }
    }

    /**
     * Bursts of {@code atOnce} requests that are due at one instant. When all requests of a burst have ended, the next
     * one begins, until there were {@code iterations}. Source: niswar (100 … 500 concurrent requests, ten iterations,
     * mean response time by equation 1).
     */
    record Burst(int atOnce, int iterations) implements Load {
        public Burst {
            LoadForm.count("atOnce", atOnce);
            LoadForm.count("iterations", iterations);
        }

        @Override
        public String toString() {
            return "burst:" + atOnce + ":" + iterations;
        }
    }

    /**
     * One cell of a {@link Grid}: {@code requests} calls handed to a new pool of {@code threads}, timed from before the
     * pool is made until a latch says all have ended; {@code rounds} times, the first of which is told but not counted.
     * A round that takes longer than {@code roundLimit} has failed. Source: zhang, pseudocode of the client-side
     * testing program, and its section on cleaning.
     */
    record Rounds(int threads, int requests, int rounds, Duration roundLimit, ClientUse use) implements Load {
        public Rounds {
            LoadForm.count("threads", threads);
            LoadForm.count("requests", requests);
            LoadForm.count("rounds", rounds);
            if (rounds < 2) {
                throw new BadInput("rounds", rounds, "2 or more, since the first is not counted");
            }
            LoadForm.longer("roundLimit", roundLimit);
        }

        @Override
        public String toString() {
            return "rounds:" + threads + "x" + requests + ":" + rounds + ":" + LoadForm.text(roundLimit) + ":"
                    + LoadForm.text(use);
        }
    }

    /**
     * Searches for the highest rate, from {@code from} to {@code to} a second, at which the percentile of the response
     * time of all due requests still is at most {@code latency}; a request without a right reply counts as one that
     * took forever. Each rate is tried for {@code tryLength}, Poisson arrivals, and is too high when two tries in a row
     * miss; the search ends when the highest rate that met the limit and the lowest that is too high are within 5 % of
     * each other.
     */
    record HighestRate(double from, double to, double percentile, Duration latency, Duration tryLength)
            implements Load {
        public HighestRate {
            LoadForm.rate("from", from);
            LoadForm.rate("to", to);
            if (to < from) {
                throw new BadInput("to", to, "not under from, " + from);
            }
            if (!(percentile > 0) || !(percentile < 100)) {
                throw new BadInput("percentile", percentile, "between 0 and 100, such as 99");
            }
            LoadForm.longer("latency", latency);
            LoadForm.longer("tryLength", tryLength);
        }

        @Override
        public String toString() {
            return "highest:" + LoadForm.text(from) + "-" + LoadForm.text(to) + ":p" + LoadForm.text(percentile) + ":"
                    + LoadForm.text(latency) + ":" + LoadForm.text(tryLength);
        }
    }

    /**
     * Every number of threads with every number of requests, each pair a load of its own. Source: zhang (threads 10 …
     * 990, requests 10 … 900, ten rounds, over 600 s failed).
     *
     * @param use shared, or a client for each call
     */
    record Grid(Range threads, Range requests, int rounds, Duration roundLimit, ClientUse use) {
        public List<Load> cells() {
            List<Load> cells = new ArrayList<>();
            for (int thread : threads.values()) {
                for (int request : requests.values()) {
                    cells.add(new Rounds(thread, request, rounds, roundLimit, use));
                }
            }
            return List.copyOf(cells);
        }

        @Override
        public String toString() {
            return "grid:" + threads + ":" + requests + ":" + rounds + ":" + LoadForm.text(roundLimit) + ":"
                    + LoadForm.text(use);
        }
    }

    /**
     * {@code from}, then {@code step} more each time, and always {@code to} as the last. Written {@code 10-990+100}.
     */
    record Range(int from, int to, int step) {
        public Range {
            LoadForm.range("range", from, to, step);
        }

        public List<Integer> values() {
            List<Integer> values = new ArrayList<>();
            for (int value = from; value < to; value += step) {
                values.add(value);
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

    /**
     * Reads the form that {@link #toString} writes: {@code closed:16}, {@code open:300:poisson},
     * {@code staircase:10-200:+10:30s}.
     */
    static Load parse(String text) {
        return LoadForm.load(text);
    }

    /**
     * Like {@link #parse}; and a grid, written {@code grid:10-990+100:10-900+200:10:600s:shared}, gives all of its
     * cells.
     */
    static List<Load> parseAll(String text) {
        return text.strip().startsWith("grid:") ? LoadForm.grid(text).cells() : List.of(parse(text));
    }

    /** The written forms. */
    String FORMS = LoadForm.FORMS;

    /** True where latency runs from the intended send time and no request waits for the reply to another user's. */
    default boolean isOpen() {
        return switch (this) {
            case Closed _, Staircase _, Held _, Burst _, Rounds _ -> false;
            case Open _, RateRamp _, Users _, HighestRate _ -> true;
        };
    }

    /**
     * How long the load itself says that it lasts; empty where the trial's window says it ({@link Closed},
     * {@link Open}), and where it is over when its work is done ({@link Burst}, {@link Rounds}, {@link HighestRate}).
     */
    default Optional<Duration> ownLength() {
        return switch (this) {
            case Closed _, Open _, Burst _, Rounds _, HighestRate _ -> Optional.empty();
            case Staircase s ->
                Optional.of(s.stepLength().multipliedBy(s.steps().size()));
            case RateRamp r -> Optional.of(r.length());
            case Users u -> Optional.of(u.length());
            case Held h -> Optional.of(h.length());
        };
    }

    /** True where the load consists of users, who come, carry out their scenario and leave. */
    default boolean hasUsers() {
        return switch (this) {
            case Users _, Held _ -> true;
            case Closed _, Open _, Staircase _, RateRamp _, HighestRate _, Burst _, Rounds _ -> false;
        };
    }

    /** True where the load is over when its work is done, however long that takes. */
    default boolean isCounted() {
        return switch (this) {
            case Burst _, Rounds _, HighestRate _ -> true;
            case Closed _, Open _, Staircase _, RateRamp _, Users _, Held _ -> false;
        };
    }

    /** True where the load asks for the same throughout, so that latency can be level. */
    default boolean isSteady() {
        return switch (this) {
            case Closed _, Open _ -> true;
            case Staircase _, RateRamp _, Users _, Held _, Burst _, Rounds _, HighestRate _ -> false;
        };
    }

    /**
     * True where the load says how many requests there are a second: throughput is the load's own then, and no figure
     * of a technology that keeps up with it.
     */
    default boolean hasRate() {
        return switch (this) {
            case Open _, RateRamp _, Users _ -> true;
            case Closed _, Staircase _, Held _, Burst _, Rounds _, HighestRate _ -> false;
        };
    }

    /** True where the load is a fixed number of requests, however fast they are answered. */
    default boolean isOfOneNumber() {
        return switch (this) {
            case Burst _, Rounds _ -> true;
            case Closed _, Open _, Staircase _, RateRamp _, Users _, Held _, HighestRate _ -> false;
        };
    }

    /**
     * The load of the warm-up: the load's own beginning, held; or a few clients, where users of the load would stay in
     * the system beyond the beginning of the window.
     */
    default Load warmUp() {
        return switch (this) {
            case Closed _, Open _ -> this;
            case Staircase s -> new Closed(s.from());
            case RateRamp r -> new Open(r.from(), r.arrivals());
            case Users _, HighestRate _ -> new Closed(WARM_UP_CLIENTS);
            case Held h -> new Held(h.from(), h.from(), h.length(), h.iterations(), h.use());
            case Burst b -> new Closed(Math.min(b.atOnce(), WARM_UP_CLIENTS));
            case Rounds r -> new Closed(Math.min(r.threads(), WARM_UP_CLIENTS));
        };
    }

    /** The most clients that warm up a counted load, a load of arriving users, or a search. */
    int WARM_UP_CLIENTS = 16;

    /** The same load in a form that takes {@code factor} of the time; counts and rates stay. */
    default Load inTime(double factor) {
        return switch (this) {
            case Closed _, Open _, Burst _ -> this;
            case Staircase s ->
                new Staircase(s.from(), s.to(), s.step(), s.times(), LoadForm.times(s.stepLength(), factor));
            case RateRamp r -> new RateRamp(r.from(), r.to(), LoadForm.times(r.length(), factor), r.arrivals());
            case Users u ->
                new Users(u.from(), u.to(), LoadForm.times(u.length(), factor), u.iterations(), u.arrivals(), u.use());
            case Held h -> new Held(h.from(), h.to(), LoadForm.times(h.length(), factor), h.iterations(), h.use());
            case Rounds r ->
                new Rounds(r.threads(), r.requests(), r.rounds(), LoadForm.times(r.roundLimit(), factor), r.use());
            case HighestRate h ->
                new HighestRate(h.from(), h.to(), h.percentile(), h.latency(), LoadForm.times(h.tryLength(), factor));
        };
    }

    /** The number by which loads of one kind are sorted: the most clients, users, threads or requests a second. */
    default double amount() {
        return switch (this) {
            case Closed c -> c.clients();
            case Staircase s -> s.to();
            case Open o -> o.perSecond();
            case RateRamp r -> Math.max(r.from(), r.to());
            case Users u -> Math.max(u.from(), u.to());
            case Held h -> Math.max(h.from(), h.to());
            case Burst b -> b.atOnce();
            case Rounds r -> r.threads() * 1e6 + r.requests();
            case HighestRate h -> h.to();
        };
    }

    /** In words, with "open load" or "closed load" among them: a closed-loop figure is never taken for an open one. */
    default String title() {
        return LoadForm.title(this);
    }
}
