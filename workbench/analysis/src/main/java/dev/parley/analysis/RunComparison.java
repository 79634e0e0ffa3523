package dev.parley.analysis;

import dev.parley.model.Metric;
import dev.parley.model.Rules;
import dev.parley.model.Run;
import dev.parley.store.RunStore;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * One stored run held against another: each technology against itself, in every situation that both measured. The rules
 * are those of {@link Contest}: a difference is one only where the interval excludes 1, bootstrap and t-test are both
 * sure after Holm's correction over all rows of a metric, and the effect is above tie band and noise floor of the row.
 */
public final class RunComparison {
    private final Run baseline;
    private final Run run;
    private final List<Row> rows;
    private final int uncommon;

    /**
     * @param baseline in the metric's unit; absent where it has no valid figure
     * @param ratio run divided by baseline
     * @param verdict on the run
     * @param survivors {@code 3 of 5 restarts} of whichever run has figures of fewer restarts than it had; empty as a
     *     rule
     */
    public record Row(
            String technology,
            Situation situation,
            Metric metric,
            Estimate baseline,
            Estimate run,
            Estimate ratio,
            Verdict verdict,
            String survivors) {}

    private record Key(Cell cell, Metric metric) {}

    private RunComparison(Run baseline, Run run, List<Row> rows, int uncommon) {
        this.baseline = baseline;
        this.run = run;
        this.rows = List.copyOf(rows);
        this.uncommon = uncommon;
    }

    public static RunComparison of(RunStore baselineStore, RunStore runStore) {
        RunRows baseline = RunRows.of(baselineStore);
        RunRows run = RunRows.of(runStore);
        Map<Cell, List<JudgedTrial>> before = baseline.cells();
        Map<Cell, List<JudgedTrial>> after = run.cells();
        boolean isByOneRule = isByOneRule(baseline.run(), run.run());
        Map<Key, Contest.Sides> sides = new LinkedHashMap<>();
        List<Row> rows = new ArrayList<>();
        for (Cell cell : before.keySet()) {
            List<JudgedTrial> own = after.get(cell);
            if (own == null) {
                continue;
            }
            long seed = run.run().seed() ^ cell.toString().hashCode();
            CellSamples first = new CellSamples(baseline, cell, before.getOrDefault(cell, List.of()), seed);
            CellSamples second = new CellSamples(run, cell, own, seed + 1);
            for (Metric metric : Analysis.COMPARED) {
                Contest.Sides both = new Contest.Sides(second.of(metric), first.of(metric));
                boolean isSound = isSound(first, both.second()) && isSound(second, both.first());
                if (isByOneRule && isSound) {
                    sides.put(new Key(cell, metric), both);
                } else if (both.first().count() > 0 || both.second().count() > 0) {
                    rows.add(new Row(
                            cell.technology(),
                            cell.situation(),
                            metric,
                            Estimate.of(both.second(), seed),
                            Estimate.of(both.first(), seed),
                            Estimate.NONE,
                            isSound
                                    ? Verdict.undecided("measured by other rules")
                                    : new Verdict(CellSamples.noVerdict(first.counted(), second.counted()), 0),
                            survivors(both)));
                }
            }
        }
        for (Metric metric : Analysis.COMPARED) {
            Map<Cell, Contest.Sides> ofMetric = new LinkedHashMap<>();
            sides.forEach((key, both) -> {
                if (key.metric() == metric) {
                    ofMetric.put(key.cell(), both);
                }
            });
            new Contest(metric, run.run().seed()).eachAgainstItself(ofMetric).forEach((cell, result) -> {
                Contest.Sides both = ofMetric.getOrDefault(cell, Contest.Sides.NONE);
                rows.add(new Row(
                        cell.technology(),
                        cell.situation(),
                        metric,
                        Estimate.of(both.second(), run.run().seed()),
                        Estimate.of(both.first(), run.run().seed()),
                        result.ratio(),
                        result.verdict(),
                        survivors(both)));
            });
        }
        Set<String> uncommon = new TreeSet<>();
        before.keySet().stream().filter(c -> !after.containsKey(c)).forEach(c -> uncommon.add(c.toString()));
        return new RunComparison(baseline.run(), run.run(), rows, uncommon.size());
    }

    private static String survivors(Contest.Sides both) {
        return Stream.of(both.second(), both.first())
                .filter(side -> side.count() < side.tried())
                .map(side -> side.count() + " of " + side.tried() + " restarts")
                .distinct()
                .collect(Collectors.joining(" → "));
    }

    private static boolean isSound(CellSamples cell, Sample sample) {
        return sample.count() > 0
                && sample.median() > 0
                && cell.counted().stream().anyMatch(JudgedTrial::isValid);
    }

    public Run baseline() {
        return baseline;
    }

    public Run run() {
        return run;
    }

    /** One for each technology, situation and metric that both runs planned and at least one measured. */
    public List<Row> rows() {
        return rows;
    }

    /** False where what counts as warm, as a window or as a verdict was another thing in each: nothing is compared. */
    public boolean isByOneRule() {
        return isByOneRule(baseline, run);
    }

    private static boolean isByOneRule(Run baseline, Run run) {
        return Rules.of(baseline).equals(Rules.of(run));
    }

    /** True where some figure of the run is held against the baseline's: where there is a ratio. */
    public boolean isOfSomething() {
        return rows.stream().anyMatch(row -> row.ratio().isPresent());
    }

    /** Technologies in situations of the baseline that the run did not plan. */
    public int uncommon() {
        return uncommon;
    }

    /**
     * What of machine, JDK, JVM flags, brokers and databases differs, so that figures of the two cannot be held against
     * each other; empty where nothing does. A broker or database that only one of the two runs has is no difference:
     * what needs it is in that run alone.
     */
    public List<String> differences() {
        List<String> differences = new ArrayList<>();
        Set<String> facts = new TreeSet<>(baseline.machine().keySet());
        facts.addAll(run.machine().keySet());
        for (String fact : facts) {
            boolean isOfBoth =
                    baseline.machine().containsKey(fact) && run.machine().containsKey(fact);
            if (Run.isOfBackend(fact) && !isOfBoth) {
                continue;
            }
            differ(
                    fact,
                    baseline.machine().getOrDefault(fact, "unknown"),
                    run.machine().getOrDefault(fact, "unknown"),
                    differences);
        }
        differ("jdk", baseline.jdk(), run.jdk(), differences);
        differ("jvm flags", baseline.jvmFlags().toString(), run.jvmFlags().toString(), differences);
        return List.copyOf(differences);
    }

    private static void differ(String what, String before, String after, List<String> differences) {
        if (!before.equals(after)) {
            differences.add(what + ": " + before + " → " + after);
        }
    }
}
