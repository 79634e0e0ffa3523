package dev.parley.lab;

import dev.parley.load.Event;
import dev.parley.model.BadInput;
import dev.parley.model.MessageSpec;
import dev.parley.model.Run;
import dev.parley.model.Technology;
import dev.parley.model.Topology;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.probe.MachineFacts;
import dev.parley.process.Children;
import dev.parley.process.ProcessException;
import dev.parley.spi.Work;
import dev.parley.store.RunStore;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** Carries out comparisons. One at a time in a process. */
public final class Lab {
    public static final String STORE_FILE = "results.duckdb";
    private static final DateTimeFormatter RUN_ID = DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH-mm-ss");

    private final Path home;
    private final Catalog catalog;
    private final Installations installations;
    private final LabListener listener;

    /** How a run ended. */
    public record Ending(int finished, int failed, int voided, Optional<String> firstFailure) {}

    public Lab(Catalog catalog, LabListener listener) {
        this.home = Installations.home();
        this.catalog = catalog;
        this.installations = new Installations(home, catalog);
        this.listener = listener;
    }

    /**
     * Measures, and leaves the store in {@code out}.
     *
     * @param out an existing, writable folder without a run in it
     * @param command as typed, for the record
     * @throws InterruptedException if the lab was told to end; finished trials are in the store, the one under way is marked
     */
    public Ending run(Comparison comparison, Path out, String command) throws InterruptedException {
        check(comparison);
        Plan plan = Plan.of(comparison);
        Path logs = folder(out.resolve("logs"));
        List<Technology> technologies = new ArrayList<>();
        for (String name : comparison.technologies()) {
            technologies.add(
                    Descriptions.of(name, installation(name, comparison), logs.resolve("describe-" + name + ".log")));
        }
        Run run = new Run(
                LocalDateTime.now().format(RUN_ID),
                Instant.now(),
                command,
                comparison.seed(),
                commit(),
                MachineFacts.read(),
                System.getProperty("java.vendor") + " " + System.getProperty("java.vm.version"),
                ServiceJvm.FLAGS,
                technologies);
        Children.toBeSaved();
        try (RunStore store = RunStore.create(out.resolve(STORE_FILE), run)) {
            store.appendPlan(plan.trials());
            for (String name : comparison.technologies()) {
                store.appendLibraries(installation(name, comparison).libraries(name));
            }
            store.appendLibraries(installations.empty().libraries(dev.parley.model.FigureRow.EMPTY));
            listener.planned(plan);
            Ending ending = carryOut(plan, comparison, store, logs);
            store.buildViews();
            return ending;
        } finally {
            Children.saved();
        }
    }

    private Installation installation(String technology, Comparison comparison) {
        Topology topology = comparison.topologies().getFirst();
        return installations.service(technology, topology, topology.nodes().getLast(), comparison.work());
    }

    /** Everything that can be wrong is found before anything is started. */
    private void check(Comparison comparison) {
        comparison.technologies().forEach(catalog::module);
        Work work = Work.named(comparison.work());
        for (Topology topology : comparison.topologies()) {
            for (MessageSpec message : comparison.messages()) {
                work.exchange(message, topology, topology.entry(), comparison.seed());
            }
        }
    }

    private Ending carryOut(Plan plan, Comparison comparison, RunStore store, Path logs) throws InterruptedException {
        int finished = 0;
        int failed = 0;
        int voided = 0;
        Optional<String> firstFailure = Optional.empty();
        int block = 0;
        for (int i = 0; i < plan.boots().size(); i++) {
            Plan.Boot boot = plan.boots().get(i);
            listener.booting(boot, i);
            if (boot.block() != block) {
                block = boot.block();
                store.appendFigures(EmptyService.measure(
                        installations.empty(), boot.trials().getFirst().id(), logs.resolve(block + "-empty.log")));
            }
            List<TrialSpec> left = new ArrayList<>(boot.trials());
            Instant startedAt = Instant.now();
            try (Deployment deployment = new Deployment(boot, installations, logs, comparison.seed(), listener)) {
                store.appendFigures(deployment.boot());
                while (!left.isEmpty()) {
                    startedAt = Instant.now();
                    Deployment.Measured measured = deployment.run(left.getFirst());
                    store.append(measured.trial(), measured.seconds(), measured.histograms(), measured.figures());
                    left.removeFirst();
                    finished++;
                    voided += measured.trial().isValid() ? 0 : 1;
                    listener.trialEnded(measured.trial(), Optional.of(measured.finished()));
                }
            } catch (LabException | ProcessException e) {
                boolean isToldToEnd = Children.isShuttingDown();
                TrialRow.State state = isToldToEnd ? TrialRow.State.INTERRUPTED : TrialRow.State.FAILED;
                String message = isToldToEnd ? "the lab was told to end" : String.valueOf(e.getMessage());
                for (int k = 0; k < left.size(); k++) {
                    if (isToldToEnd && k > 0) {
                        break; // the others never began
                    }
                    String why = k == 0
                            ? message
                            : "not begun, because trial " + left.getFirst().id() + " failed: " + message;
                    TrialRow row = new TrialRow(left.get(k), state, startedAt, Instant.now(), List.of(), why);
                    store.append(row);
                    listener.trialEnded(row, Optional.<Event.Finished>empty());
                    failed++;
                }
                if (isToldToEnd) {
                    throw (InterruptedException) new InterruptedException("told to end").initCause(e);
                }
                firstFailure = firstFailure.isEmpty() ? Optional.of(message) : firstFailure;
            }
        }
        return new Ending(finished, failed, voided, firstFailure);
    }

    private static Path folder(Path path) {
        try {
            return Files.createDirectories(path);
        } catch (IOException e) {
            throw new BadInput("--out", path, "a folder that can be written (" + e.getMessage() + ")");
        }
    }

    private String commit() {
        try {
            Process git = new ProcessBuilder(
                            "git", "-C", home.toString(), "describe", "--always", "--dirty", "--abbrev=12")
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            String text = new String(git.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
            return git.waitFor(5, TimeUnit.SECONDS) && git.exitValue() == 0 ? text : "unknown";
        } catch (IOException noGit) {
            return "unknown";
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return "unknown";
        }
    }
}
