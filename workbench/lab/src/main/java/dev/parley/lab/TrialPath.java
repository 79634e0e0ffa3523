package dev.parley.lab;

import dev.parley.model.FigureRow;
import dev.parley.model.Metric;
import dev.parley.model.TrialSpec;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.IntSupplier;

/**
 * The path of the trials of one boot, from its plan to their rows: nothing but the steps, in their order.
 * {@link PlanRun} calls {@link #boot}, {@link #prepare} and, for each trial, {@link #run}, and stores what they return.
 * ARCHITECTURE.md lists the same path by its files. One thread. Closing ends all processes of the boot.
 */
final class TrialPath implements AutoCloseable {
    private final Plan.Boot planned;
    private final LabListener listener;
    private final Deployment deployment;
    private final Booting booting;
    private final Observation observation;
    private final ByteCount byteCount;
    private final Rehearsal rehearsal;
    private final Settling settling;
    private final Measuring measuring;
    private final Judge judge;

    /**
     * @param broker that the boot's technology needs
     * @param ceiling of the load generator
     * @param ports where services listen, one at a time
     */
    TrialPath(
            Plan.Boot planned,
            Installations installations,
            Path logs,
            long seed,
            LabListener listener,
            Optional<Broker> broker,
            Databases databases,
            Ceiling ceiling,
            Observation observation,
            IntSupplier ports)
            throws InterruptedException {
        this.planned = planned;
        this.listener = listener;
        this.observation = observation;
        deployment = new Deployment(planned, installations, logs, seed, broker, databases);
        booting = new Booting(deployment, installations, observation, listener, ports);
        byteCount = new ByteCount(deployment, listener);
        settling = new Settling(deployment);
        measuring = new Measuring(deployment);
        rehearsal = new Rehearsal(
                new RehearsalStage(planned.trials().getFirst(), settling, measuring, listener),
                planned.rehearsalLeast(),
                planned.rehearsal(),
                planned.trials().size());
        judge = new Judge(ceiling);
    }

    /** Once a boot. Returns the figures of the boot. */
    List<FigureRow> boot() throws InterruptedException {
        List<FigureRow> figures = booting.boot();
        observation.booted(planned, deployment.services());
        return figures;
    }

    /**
     * Once a boot, before its first trial. Limits hold from its end on: to boot and to rehearse on a part of a core
     * would take many times as long.
     */
    void prepare() throws InterruptedException {
        byteCount.beforeRehearsal();
        rehearsal.of(
                planned.trials().stream().map(TrialSpec::message).distinct().toList());
        deployment.confinement().tighten();
    }

    /** Once a trial. Returns its rows. */
    TrialRows run(TrialSpec trial) throws InterruptedException {
        settling.settle();
        List<FigureRow> bytes = byteCount.of(trial);
        rehearsal.before(trial);
        settling.settle();
        Measured measured =
                measuring.of(trial, Integer.toString(trial.id()), progress -> listener.progress(trial, progress));
        settling.after(measured);
        List<FigureRow> figures = figures(measured, bytes);
        List<String> reasons = judge.reasons(measured, figures);
        return TrialRows.of(measured, figures, reasons);
    }

    private List<FigureRow> figures(Measured measured, List<FigureRow> bytes) {
        TrialSpec trial = measured.trial();
        List<FigureRow> figures = new ArrayList<>(measured.figures());
        figures.add(new FigureRow(
                trial.id(),
                Metric.GENERATOR_CEILING,
                "generator",
                judge.ceiling().perSecond()));
        figures.add(new FigureRow(
                trial.id(), Metric.REHEARSAL_TIME, FigureRow.SYSTEM, rehearsed().toNanos() / 1e9));
        rehearsal
                .reachedMs(trial)
                .ifPresent(ms -> figures.add(new FigureRow(trial.id(), Metric.REHEARSED_MEDIAN, FigureRow.SYSTEM, ms)));
        figures.addAll(bytes);
        return figures;
    }

    /** Time for which the services of this boot were rehearsed so far. */
    Duration rehearsed() {
        return rehearsal.spent();
    }

    @Override
    public void close() {
        deployment.close();
    }
}
