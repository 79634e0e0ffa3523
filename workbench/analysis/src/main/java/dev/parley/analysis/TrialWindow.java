package dev.parley.analysis;

import dev.parley.model.Metric;
import dev.parley.model.MetricSource;
import dev.parley.model.MetricSource.ResponseTimes;
import dev.parley.model.SecondRow;
import dev.parley.model.TrialSpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.SplittableRandom;
import java.util.function.ToLongFunction;

/** The measured window of one restart's trial, second by second, in a form that can be drawn from again and again. */
final class TrialWindow {
    /** The metrics of response times, and which figure of the times each is. */
    private static final Map<Metric, ResponseTimes> OF_TIMES = new EnumMap<>(Metric.class);

    static {
        for (Metric metric : Metric.values()) {
            for (MetricSource source : metric.sources()) {
                if (source instanceof ResponseTimes times) {
                    OF_TIMES.put(metric, times);
                }
            }
        }
    }

    private final double windowSeconds;
    private final long[] values;
    /** Per second: index into {@link #values}, then count. */
    private final List<int[]> indexes = new ArrayList<>();

    private final List<long[]> counts = new ArrayList<>();
    private final List<SecondRow> rows;

    /**
     * @param ownSeconds the time that the trial's requests took by the generator's clock, which its rates are counts
     *     over; the window that was asked for stands in for it where a run kept none
     */
    TrialWindow(TrialSpec spec, List<SecondRow> all, OptionalDouble ownSeconds) {
        this.windowSeconds = ownSeconds.orElse(spec.window().length().toNanos() / 1e9);
        this.rows = all.stream().filter(s -> s.second() >= 0).toList();
        List<Distribution> perSecond = rows.stream()
                .map(row -> Distribution.merged(List.of(row.responseTimes())))
                .toList();
        this.values = perSecond.stream()
                .flatMapToLong(second -> Arrays.stream(second.values()))
                .sorted()
                .distinct()
                .toArray();
        for (Distribution second : perSecond) {
            indexes.add(Arrays.stream(second.values())
                    .mapToInt(value -> Arrays.binarySearch(values, value))
                    .toArray());
            counts.add(second.counts());
        }
    }

    Map<Metric, Double> asMeasured() {
        return figures(all());
    }

    /** As many seconds as there are, drawn with replacement. */
    Map<Metric, Double> drawn(SplittableRandom random) {
        return figures(picked(random));
    }

    /**
     * A percentile of all requests that were due, in ms. One without a right reply in time took longer than any other,
     * and a percentile that falls on it is infinite. NaN where nothing was due.
     */
    double ofDue(double percent) {
        return ofDue(percent, all());
    }

    /** The same of seconds drawn again. */
    double drawnOfDue(double percent, SplittableRandom random) {
        return ofDue(percent, picked(random));
    }

    boolean isEmpty() {
        return rows.isEmpty();
    }

    /** Every request that was due has a right reply in time. */
    boolean isAnswered() {
        return rows.stream().allMatch(row -> due(row) == row.replied());
    }

    long samples() {
        return counts.stream().flatMapToLong(Arrays::stream).sum();
    }

    /** Replies of any kind, right, late or wrong: what the services' processor time was spent on. */
    long answered() {
        return rows.stream().mapToLong(s -> s.replied() + s.late() + s.wrong()).sum();
    }

    long notSent() {
        return rows.stream().mapToLong(SecondRow::notSent).sum();
    }

    double windowSeconds() {
        return windowSeconds;
    }

    private int[] all() {
        int[] each = new int[rows.size()];
        Arrays.setAll(each, i -> i);
        return each;
    }

    private int[] picked(SplittableRandom random) {
        int[] picked = new int[rows.size()];
        Arrays.setAll(picked, i -> random.nextInt(rows.size()));
        return picked;
    }

    private Map<Metric, Double> figures(int[] seconds) {
        long replied = sum(seconds, SecondRow::replied);
        long due = sum(seconds, TrialWindow::due);
        Map<Metric, Double> figures = new EnumMap<>(Metric.class);
        Distribution times = new Distribution(values, merged(seconds));
        if (!times.isEmpty()) {
            OF_TIMES.forEach((metric, wanted) -> figures.put(metric, times.ns(wanted.percentile()) / 1e6));
        }
        if (due > 0) {
            figures.put(Metric.THROUGHPUT, replied / windowSeconds);
            figures.put(Metric.SUCCESS_SHARE, 100.0 * replied / due);
        }
        return figures;
    }

    private double ofDue(double percent, int[] seconds) {
        long[] times = Arrays.copyOf(values, values.length + 1);
        times[values.length] = Long.MAX_VALUE;
        long[] each = Arrays.copyOf(merged(seconds), values.length + 1);
        each[values.length] = sum(seconds, row -> due(row) - row.replied());
        double ns = new Distribution(times, each).percentileNs(percent);
        return ns >= Long.MAX_VALUE ? Double.POSITIVE_INFINITY : ns / 1e6;
    }

    /** How often each of {@link #values} is in the given seconds. */
    private long[] merged(int[] seconds) {
        long[] merged = new long[values.length];
        for (int second : seconds) {
            int[] index = indexes.get(second);
            long[] count = counts.get(second);
            for (int i = 0; i < index.length; i++) {
                merged[index[i]] += count[i];
            }
        }
        return merged;
    }

    private long sum(int[] seconds, ToLongFunction<SecondRow> count) {
        return Arrays.stream(seconds)
                .mapToLong(second -> count.applyAsLong(rows.get(second)))
                .sum();
    }

    private static long due(SecondRow row) {
        return row.replied() + row.late() + row.wrong() + row.failed() + row.notSent();
    }
}
