package dev.parley.model;

import dev.parley.model.Load.Arrivals;
import dev.parley.model.Load.ClientUse;
import java.time.Duration;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The written form of loads, one line each, and the checks of their parts. */
final class LoadForm {
    static final String FORMS =
            "closed:n, open:rate:even or open:rate:poisson, staircase:10-200:+10:30s, ramp:10-1000:60s:even, "
                    + "users:300:60s:10, held:100:60s:2, burst:500:10, rounds:10x100:10:600s:shared, highest:100-20000:p99:50ms:5s";

    private static final int MAX_COUNT = 1_000_000;
    private static final int MAX_CLIENTS = 100_000;
    private static final Pattern DURATION = Pattern.compile("(\\d{1,9})(ms|s|m|h)");

    private LoadForm() {}

    static Load load(String text) {
        String[] p = text.strip().split(":", -1);
        try {
            return switch (p[0] + "/" + p.length) {
                case "closed/2" -> new Load.Closed(Integer.parseInt(p[1]));
                case "open/3" -> new Load.Open(Double.parseDouble(p[1]), arrivals(p[2]));
                case "staircase/4" -> {
                    String[] span = p[1].split("-", 2);
                    boolean isEven = p[2].startsWith("+");
                    yield new Load.Staircase(
                            Integer.parseInt(span[0]),
                            Integer.parseInt(span[1]),
                            isEven ? Integer.parseInt(after("+", p[2])) : 0,
                            isEven ? 1 : Integer.parseInt(after("x", p[2])),
                            duration(p[3]));
                }
                case "ramp/4" -> new Load.RateRamp(first(p[1]), last(p[1]), duration(p[2]), arrivals(p[3]));
                case "users/4", "users/5", "users/6" ->
                    new Load.Users(
                            first(p[1]),
                            last(p[1]),
                            duration(p[2]),
                            Integer.parseInt(p[3]),
                            p.length > 4 ? arrivals(p[4]) : Arrivals.EVEN,
                            p.length > 5 ? use(p[5]) : ClientUse.SHARED);
                case "held/4", "held/5" ->
                    new Load.Held(
                            Math.toIntExact((long) first(p[1])),
                            Math.toIntExact((long) last(p[1])),
                            duration(p[2]),
                            Integer.parseInt(p[3]),
                            p.length > 4 ? use(p[4]) : ClientUse.SHARED);
                case "burst/3" -> new Load.Burst(Integer.parseInt(p[1]), Integer.parseInt(p[2]));
                case "rounds/5" -> {
                    String[] cell = p[1].split("x", 2);
                    yield new Load.Rounds(
                            Integer.parseInt(cell[0]),
                            Integer.parseInt(cell[1]),
                            Integer.parseInt(p[2]),
                            duration(p[3]),
                            use(p[4]));
                }
                case "highest/5" ->
                    new Load.HighestRate(
                            first(p[1]),
                            last(p[1]),
                            Double.parseDouble(after("p", p[2])),
                            duration(p[3]),
                            duration(p[4]));
                default -> throw new BadInput("load", text, FORMS);
            };
        } catch (BadInput e) {
            throw e;
        } catch (IllegalArgumentException | ArithmeticException | ArrayIndexOutOfBoundsException e) {
            throw new BadInput("load", text, FORMS);
        }
    }

    static Load.Grid grid(String text) {
        String[] p = text.strip().split(":", -1);
        try {
            if (p.length == 6) {
                return new Load.Grid(range(p[1]), range(p[2]), Integer.parseInt(p[3]), duration(p[4]), use(p[5]));
            }
        } catch (BadInput e) {
            throw e;
        } catch (IllegalArgumentException | ArrayIndexOutOfBoundsException e) {
            throw new BadInput("grid", text, "grid:10-990+100:10-900+200:10:600s:shared");
        }
        throw new BadInput("grid", text, "grid:10-990+100:10-900+200:10:600s:shared");
    }

    private static Load.Range range(String text) {
        String[] sides = text.split("[-+]", 3);
        return new Load.Range(Integer.parseInt(sides[0]), Integer.parseInt(sides[1]), Integer.parseInt(sides[2]));
    }

    private static String after(String mark, String text) {
        if (!text.startsWith(mark)) {
            throw new IllegalArgumentException(text);
        }
        return text.substring(mark.length());
    }

    private static double first(String span) {
        return Double.parseDouble(span.split("-", 2)[0]);
    }

    private static double last(String span) {
        String[] sides = span.split("-", 2);
        return Double.parseDouble(sides[sides.length - 1]);
    }

    private static Arrivals arrivals(String text) {
        return Arrivals.valueOf(text.toUpperCase(Locale.ROOT));
    }

    private static ClientUse use(String text) {
        return ClientUse.valueOf(text.toUpperCase(Locale.ROOT).replace('-', '_'));
    }

    static Duration duration(String text) {
        Matcher matcher = DURATION.matcher(text);
        if (!matcher.matches()) {
            throw new BadInput("duration", text, "a whole number and ms, s, m or h, such as 30s");
        }
        long number = Long.parseLong(matcher.group(1));
        Duration duration = switch (matcher.group(2)) {
            case "ms" -> Duration.ofMillis(number);
            case "s" -> Duration.ofSeconds(number);
            case "m" -> Duration.ofMinutes(number);
            default -> Duration.ofHours(number);
        };
        if (duration.compareTo(Study.MAX_TIME) > 0) {
            throw new BadInput("duration", text, "at most " + Study.MAX_TIME.toHours() + "h");
        }
        return duration;
    }

    static String text(Duration duration) {
        long ms = duration.toMillis();
        return ms % 1000 == 0 ? ms / 1000 + "s" : ms + "ms";
    }

    static String text(double value) {
        return value == Math.rint(value) ? Long.toString((long) value) : Double.toString(value);
    }

    static String text(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    static String span(double from, double to) {
        return from == to ? text(from) : text(from) + "-" + text(to);
    }

    static Duration times(Duration duration, double factor) {
        return Duration.ofMillis(Math.max(1, Math.round(duration.toMillis() * factor)));
    }

    static void count(String what, int value) {
        int most = what.equals("clients") ? MAX_CLIENTS : MAX_COUNT;
        if (value < 1 || value > most) {
            throw new BadInput(what, value, "1 to " + most);
        }
    }

    static void range(String what, int from, int to, int step) {
        count(what, from);
        if (to < from || to > MAX_CLIENTS) {
            throw new BadInput(what, from + "-" + to, "from the fewest to the most, at most " + MAX_CLIENTS);
        }
        if (step < 1) {
            throw new BadInput("step of " + what, step, "1 or more");
        }
    }

    static void rate(String what, double value) {
        if (!(value > 0) || !(value <= 10_000_000)) {
            throw new BadInput(what, value, "> 0 and at most 10000000");
        }
    }

    /** Whole milliseconds, so that the written form loses nothing. */
    static void longer(String what, Duration value) {
        if (value.toMillis() < 1 || value.getNano() % 1_000_000 != 0) {
            throw new BadInput(what, value, "whole milliseconds, 1 or more");
        }
    }

    static String title(Load load) {
        return switch (load) {
            case Load.Closed c -> c.clients() + (c.clients() == 1 ? " client" : " clients") + " (closed load)";
            case Load.Staircase s ->
                s.from() + " to " + s.to() + " clients, "
                        + (s.times() == 1 ? s.step() + " more every " : s.times() + " times as many every ")
                        + text(s.stepLength()) + " (closed load)";
            case Load.Open o -> text(o.perSecond()) + " requests/s (open load, " + text(o.arrivals()) + ")";
            case Load.RateRamp r ->
                text(r.from()) + " to " + text(r.to()) + " requests/s over " + text(r.length()) + " (open load, "
                        + text(r.arrivals()) + ")";
            case Load.Users u ->
                (u.from() == u.to() ? text(u.from()) : text(u.from()) + " to " + text(u.to())) + " new users/s for "
                        + text(u.length()) + ", " + u.iterations() + " times each (open load, " + text(u.arrivals())
                        + clients(u.use()) + ")";
            case Load.Held h ->
                (h.from() == h.to() ? "" + h.to() : h.from() + " to " + h.to()) + " users held for " + text(h.length())
                        + ", " + h.iterations() + " times each (closed load" + clients(h.use()) + ")";
            case Load.Burst b -> b.atOnce() + " requests at once, " + b.iterations() + " times (closed load)";
            case Load.Rounds r ->
                r.requests() + " requests by " + r.threads() + " threads, " + r.rounds() + " rounds (closed load"
                        + clients(r.use()) + ")";
            case Load.HighestRate h ->
                "highest rate with p" + text(h.percentile()) + " ≤ " + text(h.latency()) + " (open load, poisson)";
        };
    }

    private static String clients(ClientUse use) {
        return use == ClientUse.SHARED ? "" : ", a client " + text(use).replace('-', ' ');
    }
}
