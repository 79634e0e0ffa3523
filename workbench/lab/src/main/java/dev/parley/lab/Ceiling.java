package dev.parley.lab;

import dev.parley.load.Command;
import dev.parley.load.EchoServer;
import dev.parley.load.Event;
import dev.parley.process.Child;
import dev.parley.process.ProcessException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * What the load generator itself reaches on this machine, against a server that does nothing: figures near it are the generator's and not a
 * technology's.
 *
 * @param perSecond infinite where it is not known
 */
record Ceiling(double perSecond) {
    static final Ceiling NONE = new Ceiling(Double.POSITIVE_INFINITY);

    /** Above this share of the ceiling a throughput is void. Source: the project's rules of measuring, docs/measuring.md. */
    private static final double SHARE_MOST = 0.7;

    private static final int CLIENTS = 16;
    /** For the JVMs of both sides to compile what is called most; a ceiling taken too early is too low, and voids more than it should. */
    static final Duration WARM_UP_MOST = Duration.ofSeconds(4);

    private static final Duration WINDOW = Duration.ofSeconds(1);
    private static final Duration TO_ANSWER = Duration.ofSeconds(30);

    private static Optional<Ceiling> known = Optional.empty();

    /**
     * Measured once in this process's life: the machine does not change meanwhile. Takes some four seconds.
     *
     * @param warmUp no longer than this: a study whose services hardly rehearse has no use for more
     */
    static synchronized Ceiling measured(Installation generator, Path logs, Duration warmUp)
            throws InterruptedException {
        if (known.isEmpty()) {
            known = Optional.of(measure(generator, logs, Math.min(warmUp.toMillis(), WARM_UP_MOST.toMillis())));
        }
        return known.get();
    }

    private static Ceiling measure(Installation installation, Path logs, long warmUpMs) throws InterruptedException {
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
            Event.Ceiling ceiling = generator.ask(
                    new Command.Ceiling(port, CLIENTS, warmUpMs / 2, warmUpMs, WINDOW.toMillis()),
                    Event.Ceiling.class,
                    TO_ANSWER);
            return new Ceiling(ceiling.perSecond());
        } catch (ProcessException e) {
            throw new LabException("the load generator's ceiling could not be measured: " + e.getMessage(), e);
        }
    }

    /** Why a trial's throughput is not to be believed; empty where it is far enough below. */
    Optional<String> complaint(Event.Finished trial) {
        double reached = (trial.due() - trial.notSent()) * 1e9 / trial.windowNs();
        return reached <= SHARE_MOST * perSecond
                ? Optional.empty()
                : Optional.of(String.format(
                        Locale.ROOT,
                        "%.0f requests/s are over 70 %% of the %.0f that the load generator reaches here against a server that does nothing",
                        reached,
                        perSecond));
    }
}
