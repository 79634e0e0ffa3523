package dev.parley.model;

import dev.parley.model.Load.ClientUse;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.Locale;

/** What the parameters of a load may be, and how they are written. */
final class LoadParameters {
    private static final int MAX_COUNT = 1_000_000;
    private static final int MAX_CLIENTS = 100_000;

    /** A request in eleven days. The times of schedules and searches of far lower rates would overflow. */
    private static final double MIN_RATE = 1e-6;

    private static final double MAX_RATE = 1e7;

    private LoadParameters() {}

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
        if (!(value >= MIN_RATE) || !(value <= MAX_RATE)) {
            throw new BadInput(what, value, text(MIN_RATE) + " to " + text(MAX_RATE));
        }
    }

    /** Whole milliseconds, so that the written form loses nothing. */
    static void longer(String what, Duration value) {
        if (value.toMillis() < 1 || value.getNano() % 1_000_000 != 0) {
            throw new BadInput(what, value, "whole milliseconds, 1 or more");
        }
    }

    static Duration times(Duration duration, double factor) {
        return Duration.ofMillis(Math.max(1, Math.round(duration.toMillis() * factor)));
    }

    /** Without an exponent, whose sign would be taken for the one between the ends of a range. */
    static String text(double value) {
        return value == Math.rint(value)
                ? Long.toString((long) value)
                : BigDecimal.valueOf(value).stripTrailingZeros().toPlainString();
    }

    static String text(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** {@code 2-100}, or {@code 100} where both are the same. */
    static String span(double from, double to) {
        return from == to ? text(from) : text(from) + "-" + text(to);
    }

    /** How a title names the clients that requests go over; empty where one is shared. */
    static String clients(ClientUse use) {
        return use == ClientUse.SHARED ? "" : ", a client " + text(use).replace('-', ' ');
    }
}
