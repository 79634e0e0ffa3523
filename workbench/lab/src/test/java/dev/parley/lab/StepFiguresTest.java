package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.FigureRow;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Metric;
import dev.parley.model.Topology;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Event;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

/** The figures of steps, each worked out beside it. Times under 2 048 ns are kept exactly. */
class StepFiguresTest {
    private static TrialSpec trial(String load) {
        return new TrialSpec(
                4,
                "rest",
                Topology.parse("line:2"),
                "messages",
                MessageSpec.parse("text:10"),
                Load.parse(load),
                1,
                1,
                new TrialSpec.Window(Duration.ZERO, Duration.ZERO, Duration.ofSeconds(2)),
                Duration.ofSeconds(1));
    }

    private static Event.Finished finished(int usersAtFirstFailure, double highestRate) {
        return new Event.Finished(
                4, 2_500_000_000L, 0, true, 5, 4, 3, 2, 1, 0, 0, 0, 1, usersAtFirstFailure, highestRate, List.of(), "");
    }

    private static byte[] times(long... values) {
        Histogram histogram = new Histogram(3);
        Arrays.stream(values).forEach(histogram::recordValue);
        ByteBuffer buffer = ByteBuffer.allocate(histogram.getNeededByteBufferCapacity());
        int length = histogram.encodeIntoCompressedByteBuffer(buffer);
        return Arrays.copyOf(buffer.array(), length);
    }

    /** A step of half a second for so many clients, with its replies, late, wrong, failed and unsent requests. */
    private static Event.Step step(int clients, boolean isCounted, byte[] scenarios, long... outcomes) {
        return step(clients, isCounted, 500_000_000, scenarios, outcomes);
    }

    private static Event.Step step(int clients, boolean isCounted, long lengthNs, byte[] scenarios, long... outcomes) {
        return new Event.Step(
                4,
                0,
                clients + " clients",
                clients,
                clients,
                isCounted,
                false,
                lengthNs,
                outcomes[0],
                outcomes[1],
                outcomes[2],
                outcomes[3],
                outcomes[4],
                outcomes[0] == 0 ? times() : times(1_000, 1_000, 1_600),
                scenarios);
    }

    private static FigureRow figure(Metric metric, double value) {
        return new FigureRow(4, metric, FigureRow.SYSTEM, value);
    }

    @Test
    void aWindowOfOneStepHasItsLengthAndNoStepsOfItsOwn() {
        List<Event.Step> one = List.of(step(3, true, times(), 10, 0, 0, 0, 0));
        assertThat(StepFigures.of(trial("closed:3"), one, finished(7, 80)))
                .containsExactly(figure(Metric.WINDOW_LENGTH, 2.5));
    }

    @Test
    void eachOfSeveralStepsHasFiguresOfItsOwn() {
        List<Event.Step> two = List.of(step(1, true, times(), 6, 2, 1, 2, 1), step(2, true, times(), 0, 0, 0, 0, 0));
        assertThat(StepFigures.of(trial("burst:5:2"), two, finished(7, 80)))
                .containsExactly(
                        new FigureRow(4, Metric.STEP_TIME, "1 clients", 500),
                        new FigureRow(4, Metric.STEP_THROUGHPUT, "1 clients", 12),
                        new FigureRow(4, Metric.STEP_ANSWERED, "1 clients", 16),
                        new FigureRow(4, Metric.STEP_SUCCESS_SHARE, "1 clients", 50),
                        new FigureRow(4, Metric.STEP_LATENCY_MEAN, "1 clients", 0.0012),
                        new FigureRow(4, Metric.STEP_LATENCY_P99, "1 clients", 0.0016),
                        new FigureRow(4, Metric.STEP_TIME, "2 clients", 500),
                        new FigureRow(4, Metric.STEP_THROUGHPUT, "2 clients", 0),
                        new FigureRow(4, Metric.STEP_ANSWERED, "2 clients", 0),
                        new FigureRow(4, Metric.STEP_SUCCESS_SHARE, "2 clients", 0),
                        figure(Metric.WINDOW_LENGTH, 2.5));
    }

    @Test
    void aStaircaseSaysWhereItWasBestAndWhereItGaveOut() {
        List<Event.Step> steps = List.of(
                step(1, true, times(), 10, 0, 0, 0, 0),
                step(2, true, times(), 30, 10, 10, 5, 5),
                step(3, true, times(), 30, 10, 10, 5, 6),
                step(4, true, times(), 9, 50, 0, 0, 0));
        assertThat(StepFigures.of(trial("staircase:1-4:+1:500ms"), steps, finished(7, 80)))
                .contains(
                        figure(Metric.THROUGHPUT_BEST, 60),
                        figure(Metric.CLIENTS_AT_BEST, 2),
                        figure(Metric.CLIENTS_AT_LIMIT, 3));
        assertThat(StepFigures.of(trial("staircase:1-2:+1:500ms"), steps.subList(0, 2), finished(7, 80)))
                .as("half of all is enough")
                .contains(figure(Metric.CLIENTS_AT_BEST, 2))
                .noneMatch(f -> f.metric() == Metric.CLIENTS_AT_LIMIT || f.metric() == Metric.HIGHEST_RATE);
    }

    @Test
    void stepsOfRatesSayAtWhichRateTheyWereBestAndGaveOut() {
        List<Event.Step> steps = List.of(
                step(100, true, times(), 10, 0, 0, 0, 0),
                step(200, true, times(), 30, 10, 10, 5, 5),
                step(300, true, times(), 30, 10, 10, 5, 6));
        assertThat(StepFigures.of(trial("rates:100-300:+100:500ms"), steps, finished(7, 80)))
                .contains(
                        figure(Metric.THROUGHPUT_BEST, 60),
                        figure(Metric.RATE_AT_BEST, 200),
                        figure(Metric.RATE_AT_LIMIT, 300))
                .noneMatch(f -> f.metric() == Metric.CLIENTS_AT_BEST || f.metric() == Metric.HIGHEST_RATE);
    }

    @Test
    void aStepWithoutTimeHasNoRate() {
        List<Event.Step> steps =
                List.of(step(1, true, 0, times(), 10, 0, 0, 0, 0), step(2, true, 1, times(), 1, 0, 0, 0, 0));
        assertThat(StepFigures.of(trial("staircase:1-2:+1:500ms"), steps, finished(0, 0)))
                .contains(
                        new FigureRow(4, Metric.STEP_THROUGHPUT, "1 clients", 0),
                        new FigureRow(4, Metric.STEP_THROUGHPUT, "2 clients", 1e9));
    }

    @Test
    void scenariosAreThoseOfCountedStepsAndUsersOfLoadsThatHaveThem() {
        List<Event.Step> two = List.of(
                step(1, false, times(2_000_000), 10, 0, 0, 0, 0), step(2, true, times(1_000, 2_000), 10, 0, 0, 0, 0));
        assertThat(StepFigures.of(trial("users:5:500ms:2"), two, finished(7, 80)))
                .contains(
                        figure(Metric.SCENARIO_TIME, 0.0015),
                        figure(Metric.SCENARIO_TIME_P99, 0.002),
                        figure(Metric.USERS_AT_FIRST_FAILURE, 7));
        assertThat(StepFigures.of(trial("users:5:500ms:2"), two.subList(0, 1), finished(0, 80)))
                .containsExactly(figure(Metric.WINDOW_LENGTH, 2.5));
        assertThat(StepFigures.of(trial("open:5:even"), two, finished(7, 80)))
                .noneMatch(f -> f.metric() == Metric.USERS_AT_FIRST_FAILURE);
    }

    @Test
    void aSearchSaysItsHighestRate() {
        List<Event.Step> one = List.of(step(3, true, times(), 10, 0, 0, 0, 0));
        assertThat(StepFigures.of(trial("highest:50-100:p99:50ms:500ms"), one, finished(7, 80)))
                .containsExactly(figure(Metric.WINDOW_LENGTH, 2.5), figure(Metric.HIGHEST_RATE, 80));
    }
}
