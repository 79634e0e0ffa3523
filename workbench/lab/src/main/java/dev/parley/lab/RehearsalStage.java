package dev.parley.lab;

import dev.parley.model.FigureRow;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Event;
import dev.parley.protocol.Event.Phase;
import java.time.Duration;
import java.util.OptionalDouble;
import java.util.function.Consumer;

/** Plays the slices of a rehearsal: loads as a trial has them, of which nothing is kept. One thread. */
final class RehearsalStage implements Rehearsal.Stage {
    private final TrialSpec first;
    private final Settling settling;
    private final Measuring measuring;
    private final LabListener listener;

    /** @param first trial of the boot, whose message and load a slice replaces */
    RehearsalStage(TrialSpec first, Settling settling, Measuring measuring, LabListener listener) {
        this.first = first;
        this.settling = settling;
        this.measuring = measuring;
        this.listener = listener;
    }

    @Override
    public Slice play(MessageSpec message, Load load, Duration length) throws InterruptedException {
        TrialSpec slice = new TrialSpec(
                first.id(),
                first.technology(),
                first.topology(),
                first.work(),
                message,
                load,
                first.restart(),
                first.block(),
                new TrialSpec.Window(Duration.ZERO, Duration.ZERO, length),
                first.limit());
        settling.settle();
        Measured measured = measuring.of(slice, "rehearsal", asWarmUp(slice));
        settling.after(measured);
        Glance glance = Glance.of(measured.histograms(), measured.finished());
        return new Slice(
                only(measured, Metric.COMPILING_SHARE),
                only(measured, Metric.GENERATOR_COMPILING),
                glance.medianMs(),
                glance.perSecond());
    }

    /** To those who watch, all of a slice is warm-up. */
    private Consumer<Event.Progress> asWarmUp(TrialSpec slice) {
        return p -> listener.progress(
                slice,
                new Event.Progress(
                        p.trialId(), Phase.WARM_UP, p.elapsedMs(), p.perSecond(), p.p99Ms(), p.errors(), p.inFlight()));
    }

    private static OptionalDouble only(Measured measured, Metric metric) {
        return measured.figures().stream()
                .filter(f -> f.metric() == metric)
                .mapToDouble(FigureRow::value)
                .findFirst();
    }

    @Override
    public long nowNs() {
        return System.nanoTime();
    }
}
