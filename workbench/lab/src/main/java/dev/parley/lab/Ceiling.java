package dev.parley.lab;

import dev.parley.load.EchoServer;
import dev.parley.process.Child;
import dev.parley.process.ProcessException;
import dev.parley.protocol.Command;
import dev.parley.protocol.Event;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * What the load generator itself reaches on this machine, against a server that does nothing: figures near it are the
 * generator's and not a technology's.
 *
 * @param perSecond infinite where it is not known
 */
public record Ceiling(double perSecond) {
    static final Ceiling NONE = new Ceiling(Double.POSITIVE_INFINITY);

    /**
     * Above this share of the ceiling a throughput is void. Source: the project's rules of measuring,
     * docs/measuring.md.
     */
    private static final double MAX_SHARE = 0.7;

    /** An older ceiling is measured anew: what a machine reaches at noon may not be what it reached in the morning. */
    static final Duration MAX_AGE = Duration.ofMinutes(15);

    private static final int CLIENTS = 16;
    private static final Duration WINDOW = Duration.ofSeconds(1);
    private static final Duration TO_ANSWER = Duration.ofSeconds(30);

    /** A window whose rate is no more than this times the highest before it does not rise. */
    private static final double LEVEL = 1.05;

    /** The generator is warm when so many windows in a row do not rise. */
    private static final int LEVEL_IN_A_ROW = 2;

    /** On a machine whose rates go on rising for as many windows, the highest of them is the ceiling. */
    static final int MAX_WINDOWS = 10;

    /** The ceiling of this process, for all of its runs. */
    static final Kept KEPT = new Kept();

    /** One window of full load on the server that does nothing. */
    interface Window {
        double perSecond() throws InterruptedException;
    }

    /** How a ceiling is measured. */
    interface Measurement {
        Ceiling measure() throws InterruptedException;
    }

    /** The last ceiling that was measured, until it is too old. */
    static final class Kept {
        private @Nullable Ceiling last;
        private long measuredNs;

        Kept() {}

        /** @param measuredNs when {@code known} was measured, on the clock that {@link #at} is told */
        Kept(Ceiling known, long measuredNs) {
            last = known;
            this.measuredNs = measuredNs;
        }

        synchronized Ceiling at(long nowNs, Measurement measurement) throws InterruptedException {
            Ceiling known = last;
            if (known == null || nowNs - measuredNs >= MAX_AGE.toNanos()) {
                known = measurement.measure();
                last = known;
                measuredNs = nowNs;
            }
            return known;
        }
    }

    /**
     * Requests a second that the load generator itself reaches on this machine. Takes some six seconds.
     *
     * @param logs an existing folder
     * @throws LabException where it cannot be measured
     */
    public static Ceiling here(Catalog catalog, Path logs) throws InterruptedException {
        return current(KEPT, new Installations(Installations.home(), catalog).bareGenerator(), logs);
    }

    /**
     * Measured by a generator that is warm, whatever the study is that asks for it, and kept for {@link #MAX_AGE}.
     * Takes some six seconds where it is measured.
     *
     * @throws LabException where it cannot be measured
     */
    static Ceiling current(Kept kept, Installation generator, Path logs) throws InterruptedException {
        return kept.at(System.nanoTime(), () -> measured(generator, logs));
    }

    private static Ceiling measured(Installation installation, Path logs) throws InterruptedException {
        Path log = logs.resolve("ceiling.log");
        try (Child echo = Child.java(
                        "server that does nothing",
                        List.of("-XX:+UseSerialGC", "-Xmx64m"),
                        installation.classPath(),
                        EchoServer.class.getName(),
                        List.of(),
                        log);
                Generator generator = new Generator(installation, log)) {
            int port = Integer.parseInt(echo.line(TO_ANSWER)
                    .orElseThrow(() -> new LabException("the server that does nothing said no port")));
            Command window = new Command.Ceiling(port, CLIENTS, 0, 0, WINDOW.toMillis());
            return warm(
                    () -> generator.ask(window, Event.Ceiling.class, TO_ANSWER).perSecond());
        } catch (ProcessException e) {
            throw new LabException("the load generator's ceiling could not be measured: " + e.getMessage(), e);
        }
    }

    /**
     * The highest rate of windows in a row that are asked for until they rise no more: those before are of compilers
     * still at work.
     */
    static Ceiling warm(Window window) throws InterruptedException {
        double highest = window.perSecond();
        int level = 0;
        for (int i = 1; i < MAX_WINDOWS && level < LEVEL_IN_A_ROW; i++) {
            double next = window.perSecond();
            level = next <= highest * LEVEL ? level + 1 : 0;
            highest = Math.max(highest, next);
        }
        return new Ceiling(highest);
    }

    /** Why a trial's throughput is not to be believed; empty where it is far enough below. */
    Optional<String> complaint(Event.Finished trial) {
        double reached = (trial.due() - trial.notSent()) * 1e9 / trial.windowNs();
        return reached <= MAX_SHARE * perSecond
                ? Optional.empty()
                : Optional.of(String.format(
                        Locale.ROOT,
                        "%.0f requests/s are over 70 %% of the %.0f that the load generator reaches here against a"
                                + " server that does nothing",
                        reached,
                        perSecond));
    }
}
