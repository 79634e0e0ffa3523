package dev.parley.lab;

import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.SecondRow;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Command;
import dev.parley.protocol.Event;
import dev.parley.protocol.ServiceEvent.Served;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * Puts a load on the services: begins the window, watches it and ends it, and gathers what generator, services and
 * probes have to say of it. One thread.
 */
final class Measuring {
    /** Requests of an open load that may wait for their replies at once. */
    private static final int MAX_IN_FLIGHT = 10_000;

    /** The longest time between two looks at the processes, however seldom the load generator tells something. */
    private static final Duration LOOK = Duration.ofMillis(250);

    private final Deployment deployment;
    private final long maxSilenceNs;

    Measuring(Deployment deployment) {
        this.deployment = deployment;
        this.maxSilenceNs =
                Deployment.TO_ANSWER.plus(deployment.boot().callLimit()).toNanos();
    }

    /** What the load generator tells of one load. */
    private static final class Told {
        private final List<SecondRow> seconds = new ArrayList<>();
        private final List<HistogramRow> histograms = new ArrayList<>();
        private final List<Event.Step> steps = new ArrayList<>();
        private Event.Uncounted uncounted = new Event.Uncounted(0, 0, 0);
    }

    /**
     * @param name of the window in the call logs
     * @param progressed is told how it goes
     */
    Measured of(TrialSpec trial, String name, Consumer<Event.Progress> progressed) throws InterruptedException {
        Instant startedAt = Instant.now();
        Map<String, Served> servedBefore = deployment.served();
        deployment.generator().tell(command(trial));
        WindowProbe probe = new WindowProbe(deployment);
        Told told = new Told();
        Event.Finished finished = watch(name, probe, told, progressed);
        for (ServiceProcess service : deployment.services()) {
            List<HistogramRow> hops = service.hops(trial.id());
            // Tries of a search that missed its latency are in no other distribution, and here they cannot be told from
            // the others.
            if (!trial.load().isSearch()) {
                told.histograms.addAll(hops);
            }
        }
        List<FigureRow> figures = new ArrayList<>(probe.figures(trial.id(), finished));
        figures.addAll(StepFigures.of(trial, told.steps, finished));
        Traffic traffic = deployment
                .ledger()
                .load(
                        servedBefore,
                        deployment.served(),
                        Traffic.sent(told.steps, told.uncounted),
                        Traffic.answered(told.steps, told.uncounted));
        figures.addAll(traffic.figures(trial.id()));
        return new Measured(
                trial,
                startedAt,
                told.seconds,
                told.histograms,
                told.steps,
                finished,
                figures,
                traffic,
                probe.complaints());
    }

    private Command command(TrialSpec trial) {
        TrialSpec.Window window = trial.window();
        return new Command.RunTrial(
                trial.id(),
                deployment.entry().toString(),
                trial.message().toString(),
                trial.load().toString(),
                window.warmUpLeast().toMillis(),
                window.warmUpMost().toMillis(),
                window.length().toMillis(),
                trial.limit().toMillis(),
                deployment.boot().callLimit().toMillis(),
                MAX_IN_FLIGHT);
    }

    private Event.Finished watch(String name, WindowProbe probe, Told told, Consumer<Event.Progress> progressed)
            throws InterruptedException {
        long silentUntilNs = System.nanoTime() + maxSilenceNs;
        while (true) {
            Optional<Event> event = deployment.generator().event(LOOK);
            deployment.mustBeAlive();
            if (event.isEmpty()) {
                if (System.nanoTime() > silentUntilNs) {
                    throw new LabException("the load generator was silent for " + maxSilenceNs / 1_000_000_000 + " s");
                }
                continue;
            }
            silentUntilNs = System.nanoTime() + maxSilenceNs;
            switch (event.get()) {
                case Event.Progress progress -> {
                    probe.lookAtCompilers();
                    progressed.accept(progress);
                }
                case Event.ProbeBegins edge -> {
                    probe.begin(edge.answered());
                    deployment.services().forEach(service -> service.resetHops(name));
                }
                case Event.ProbeEnds edge -> probe.end(edge.answered());
                case Event.Second second -> told.seconds.add(second.row());
                case Event.Step step -> told.steps.add(step);
                case Event.Uncounted uncounted -> told.uncounted = uncounted;
                case Event.Distribution distribution -> told.histograms.add(distribution.row());
                case Event.Finished finished -> {
                    return finished;
                }
                case Event.Done _, Event.Ready _, Event.Counted _, Event.Ceiling _, Event.Failed _ ->
                    throw new LabException("the load generator said " + event.get() + " in the middle of a trial");
            }
        }
    }
}
