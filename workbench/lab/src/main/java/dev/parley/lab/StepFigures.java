package dev.parley.lab;

import dev.parley.model.FigureRow;
import dev.parley.model.Metric;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Event;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.DataFormatException;
import org.HdrHistogram.Histogram;

/** The figures of a load's steps: each step's own, and what they say together, such as where a staircase gives out. */
final class StepFigures {
    /** A step with a lower share of successes has given out. */
    private static final double GIVEN_OUT = 0.5;

    private StepFigures() {}

    static List<FigureRow> of(TrialSpec trial, List<Event.Step> steps, Event.Finished finished) {
        List<FigureRow> figures = new ArrayList<>();
        Histogram scenarios = new Histogram(3);
        for (Event.Step step : steps) {
            if (step.isCounted()) {
                scenarios.add(decoded(step.scenarioTimes()));
            }
            if (steps.size() > 1) {
                figures.addAll(one(trial.id(), step));
            }
        }
        if (scenarios.getTotalCount() > 0) {
            figures.add(figure(trial, Metric.SCENARIO_TIME, scenarios.getMean() / 1e6));
            figures.add(figure(trial, Metric.SCENARIO_TIME_P99, scenarios.getValueAtPercentile(99) / 1e6));
        }
        if (trial.load().hasUsers() && finished.usersAtFirstFailure() > 0) {
            figures.add(figure(trial, Metric.USERS_AT_FIRST_FAILURE, finished.usersAtFirstFailure()));
        }
        figures.add(figure(trial, Metric.WINDOW_LENGTH, finished.windowNs() / 1e9));
        if (trial.load().isStepped()) {
            stepped(trial, steps, figures);
        } else if (trial.load().isSearch()) {
            figures.add(figure(trial, Metric.HIGHEST_RATE, finished.highestRate()));
        }
        return figures;
    }

    private static List<FigureRow> one(int id, Event.Step step) {
        Histogram responses = decoded(step.responseTimes());
        List<FigureRow> figures = new ArrayList<>();
        figures.add(new FigureRow(id, Metric.STEP_TIME, step.label(), step.lengthNs() / 1e6));
        figures.add(new FigureRow(id, Metric.STEP_THROUGHPUT, step.label(), perSecond(step)));
        figures.add(
                new FigureRow(id, Metric.STEP_ANSWERED, step.label(), perSecond(step.replied() + step.late(), step)));
        figures.add(new FigureRow(id, Metric.STEP_SUCCESS_SHARE, step.label(), 100 * share(step)));
        if (responses.getTotalCount() > 0) {
            figures.add(new FigureRow(id, Metric.STEP_LATENCY_MEAN, step.label(), responses.getMean() / 1e6));
            figures.add(
                    new FigureRow(id, Metric.STEP_LATENCY_P99, step.label(), responses.getValueAtPercentile(99) / 1e6));
        }
        return figures;
    }

    private static void stepped(TrialSpec trial, List<Event.Step> steps, List<FigureRow> figures) {
        Event.Step best = steps.getFirst();
        for (Event.Step step : steps) {
            if (perSecond(step) > perSecond(best)) {
                best = step;
            }
        }
        figures.add(figure(trial, Metric.THROUGHPUT_BEST, perSecond(best)));
        boolean isOpen = trial.load().isOpen();
        figures.add(figure(trial, isOpen ? Metric.RATE_AT_BEST : Metric.CLIENTS_AT_BEST, best.to()));
        steps.stream()
                .filter(step -> share(step) < GIVEN_OUT)
                .findFirst()
                .ifPresent(step ->
                        figures.add(figure(trial, isOpen ? Metric.RATE_AT_LIMIT : Metric.CLIENTS_AT_LIMIT, step.to())));
    }

    private static double perSecond(Event.Step step) {
        return perSecond(step.replied(), step);
    }

    /** Zero for a step that had no time: {@link Impossible} makes a trial void in which such a step had requests. */
    private static double perSecond(long count, Event.Step step) {
        return step.lengthNs() > 0 ? count * 1e9 / step.lengthNs() : 0;
    }

    private static double share(Event.Step step) {
        long due = step.replied() + step.late() + step.wrong() + step.failed() + step.notSent();
        return due == 0 ? 0 : (double) step.replied() / due;
    }

    private static FigureRow figure(TrialSpec trial, Metric metric, double value) {
        return new FigureRow(trial.id(), metric, FigureRow.SYSTEM, value);
    }

    private static Histogram decoded(byte[] bytes) {
        try {
            return Histogram.decodeFromCompressedByteBuffer(ByteBuffer.wrap(bytes), 0);
        } catch (DataFormatException e) {
            throw new LabException("the load generator told a histogram that cannot be read: " + e.getMessage());
        }
    }
}
