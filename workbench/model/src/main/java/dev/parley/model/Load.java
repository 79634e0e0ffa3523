package dev.parley.model;

import java.util.Locale;

/**
 * How requests are offered. A closed load's next request waits for the last reply, an open load's does not; the two are never shown on
 * one axis (Schroeder, Wierman, Harchol-Balter: Open Versus Closed, NSDI 2006).
 */
public sealed interface Load {

    /** Each of {@code clients} sends, waits for the reply or its time limit, and sends again. */
    record Closed(int clients) implements Load {
        public Closed {
            if (clients < 1 || clients > 100_000) {
                throw new BadInput("clients", clients, "1 to 100000");
            }
        }

        @Override
        public String toString() {
            return "closed:" + clients;
        }
    }

    /** Requests fall due at {@code perSecond}, whether or not earlier ones were answered. */
    record Open(double perSecond, Arrivals arrivals) implements Load {
        public Open {
            if (!(perSecond > 0) || !(perSecond <= 10_000_000)) {
                throw new BadInput("perSecond", perSecond, "> 0 and at most 10000000");
            }
        }

        @Override
        public String toString() {
            return String.format(
                    Locale.ROOT, "open:%s:%s", trim(perSecond), arrivals.name().toLowerCase(Locale.ROOT));
        }

        private static String trim(double value) {
            return value == Math.rint(value) ? Long.toString((long) value) : Double.toString(value);
        }
    }

    /** How an open load's requests are spread over time. */
    enum Arrivals {
        EVEN,
        POISSON
    }

    /** Reads the form that {@link #toString} writes: {@code closed:16}, {@code open:300:poisson}. */
    static Load parse(String text) {
        String[] parts = text.strip().split(":", -1);
        try {
            if (parts.length == 2 && parts[0].equals("closed")) {
                return new Closed(Integer.parseInt(parts[1]));
            }
            if (parts.length == 3 && parts[0].equals("open")) {
                return new Open(Double.parseDouble(parts[1]), Arrivals.valueOf(parts[2].toUpperCase(Locale.ROOT)));
            }
        } catch (BadInput e) {
            throw e;
        } catch (IllegalArgumentException e) {
            throw new BadInput("load", text, FORMS);
        }
        throw new BadInput("load", text, FORMS);
    }

    /** The written forms. */
    String FORMS = "closed:n, open:rate:even or open:rate:poisson";

    /** True where latency runs from the intended send time. */
    default boolean isOpen() {
        return switch (this) {
            case Closed c -> false;
            case Open o -> true;
        };
    }
}
