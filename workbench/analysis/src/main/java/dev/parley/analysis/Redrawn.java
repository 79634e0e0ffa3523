package dev.parley.analysis;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * A metric of one technology in one situation, restart by restart, for whoever computes with figures: what is computed
 * within each restart is a figure of that restart again, and its median over restarts and the interval of that median
 * are of one thing.
 *
 * @param byRestart as measured and as redrawn, by the number of the restart
 * @param tried restarts that ended, with a figure or without
 * @param isMean true for shares of requests, whose middle is the mean over restarts; otherwise it is the median
 */
public record Redrawn(SortedMap<Integer, Restart> byRestart, int tried, boolean isMean) {
    /**
     * One restart.
     *
     * @param value as measured
     * @param redrawn what it would have been, had its seconds been drawn again; {@code value} alone where it has none
     */
    public record Restart(double value, double[] redrawn) {
        private static Restart mean(List<Restart> all) {
            double[] redrawn = new double
                    [all.stream().mapToInt(one -> one.redrawn.length).max().orElse(0)];
            Arrays.setAll(
                    redrawn,
                    i -> all.stream()
                            .mapToDouble(one -> one.redrawn[i % one.redrawn.length])
                            .average()
                            .orElse(Double.NaN));
            return new Restart(
                    all.stream().mapToDouble(Restart::value).average().orElse(Double.NaN), redrawn);
        }
    }

    static Redrawn of(Sample sample, boolean isMean) {
        SortedMap<Integer, Restart> byRestart = new TreeMap<>();
        for (int i = 0; i < sample.count(); i++) {
            byRestart.put(
                    sample.restarts()[i],
                    new Restart(sample.points()[i], sample.pools().get(i)));
        }
        return new Redrawn(byRestart, sample.tried(), isMean);
    }

    /** Within each restart that all have; empty of none. */
    static Optional<Redrawn> mean(List<Redrawn> several) {
        if (several.isEmpty()) {
            return Optional.empty();
        }
        SortedMap<Integer, Restart> byRestart = new TreeMap<>();
        for (int restart : several.getFirst().byRestart.keySet()) {
            List<Restart> all = several.stream()
                    .flatMap(part -> Optional.ofNullable(part.byRestart.get(restart)).stream())
                    .toList();
            if (all.size() == several.size()) {
                byRestart.put(restart, Restart.mean(all));
            }
        }
        return Optional.of(new Redrawn(
                byRestart, several.stream().mapToInt(Redrawn::tried).max().orElse(0), several.getFirst().isMean));
    }

    int count() {
        return byRestart.size();
    }
}
