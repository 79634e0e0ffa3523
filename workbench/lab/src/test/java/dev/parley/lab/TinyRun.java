package dev.parley.lab;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.parley.model.Limits;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Study;
import dev.parley.model.Study.Effort;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Event;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The smallest study of real processes. Its figures mean nothing; that they are there, and what is left when something goes wrong,
 * does. As a {@code main()} it is a lab to be killed: it prints a line for each trial that ended.
 */
final class TinyRun {
    private TinyRun() {}

    /** Without a rehearsal, which is load like a window's: for tests of what a run leaves, not of how it warms up. */
    static Study study(List<String> technologies, int restarts, Duration window) {
        return study(technologies, restarts, Duration.ZERO, window);
    }

    static Study rehearsed(List<String> technologies, int restarts, Duration window) {
        return study(technologies, restarts, Duration.ofMillis(800), window);
    }

    private static Study study(List<String> technologies, int restarts, Duration rehearsal, Duration window) {
        return new Study(
                "a test",
                technologies,
                List.of(Topology.parse("line:2")),
                "messages",
                List.of(MessageSpec.parse("text:10")),
                List.of(new Load.Closed(1), new Load.Closed(2)),
                new Effort("own", restarts, rehearsal, Duration.ofMillis(200), Duration.ofMillis(400), window),
                restarts,
                Duration.ofSeconds(1),
                7,
                Limits.NONE);
    }

    /** With a ceiling that no trial reaches: one test measures it, {@link LabTest}'s of what every trial leaves. */
    static Lab lab(LabListener listener) {
        Ceiling.Kept unreached = new Ceiling.Kept(new Ceiling(1e9), System.nanoTime());
        return new Lab(Catalog.read(), listener, Map.of(), false, unreached);
    }

    /** The repository's root, which tests run below. */
    static Path home() {
        Path folder = Path.of("").toAbsolutePath();
        while (!Files.exists(folder.resolve("workbench/lab/pom.xml"))) {
            folder = folder.getParent();
        }
        return folder;
    }

    static void needPackages() {
        System.setProperty("parley.home", home().toString());
        assumeTrue(
                Files.exists(home().resolve("workbench/transport/rpcx/target/runtime.classpath")),
                "services run from packaged modules: run mvn verify, not mvn test");
    }

    /** Keeps what it is told. */
    static class Listener implements LabListener {
        final List<TrialRow> ended = new ArrayList<>();
        final List<Glance> glances = new ArrayList<>();
        final List<String> notes = new ArrayList<>();

        @Override
        public void planned(Plan plan) {}

        @Override
        public void booting(Plan.Boot boot, int bootIndex) {}

        @Override
        public void progress(TrialSpec trial, Event.Progress progress) {}

        @Override
        public void trialEnded(TrialRow row, Optional<Glance> glance) {
            ended.add(row);
            glance.ifPresent(glances::add);
        }

        @Override
        public void note(String line) {
            notes.add(line);
        }
    }

    /** {@code TinyRun FOLDER RESTARTS}: two trials of 800 ms each restart, until told to end. */
    public static void main(String[] args) {
        try {
            printing(Path.of(args[0]), Integer.parseInt(args[1]));
        } catch (InterruptedException told) {
            System.out.println("told to end");
        }
    }

    static final Duration PRINTED_WINDOW = Duration.ofMillis(800);

    private static void printing(Path folder, int restarts) throws InterruptedException {
        lab(new Listener() {
                    @Override
                    public void progress(TrialSpec trial, Event.Progress progress) {
                        if (progress.phase() == Event.Phase.WINDOW && progress.elapsedMs() > 0) {
                            System.out.println("under way " + trial.id());
                        }
                    }

                    @Override
                    public void trialEnded(TrialRow row, Optional<Glance> glance) {
                        System.out.println("ended " + row.spec().id() + " " + row.state());
                    }
                })
                .run(study(List.of("rpcx"), restarts, PRINTED_WINDOW), folder, "a test");
    }
}
