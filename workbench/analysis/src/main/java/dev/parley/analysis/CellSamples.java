package dev.parley.analysis;

import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.Metric;
import dev.parley.model.MetricSource;
import dev.parley.model.Target;
import dev.parley.model.TrialSpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Every metric of one cell as a {@link Sample}: one value a restart, with what redrawn seconds would have made of it.
 */
final class CellSamples {
    private final RunRows rows;
    private final Cell cell;
    private final List<JudgedTrial> counted;
    private final int tried;
    private final Map<Integer, TrialWindow> windows = new TreeMap<>();
    private final Map<Metric, Sample> fromSeconds = new EnumMap<>(Metric.class);

    CellSamples(RunRows rows, Cell cell, List<JudgedTrial> all, long seed) {
        this.rows = rows;
        this.cell = cell;
        this.counted = RunRows.counted(all);
        this.tried =
                (int) all.stream().map(t -> t.row().spec().restart()).distinct().count();
        for (JudgedTrial trial : counted) {
            int id = trial.row().spec().id();
            windows.put(
                    id,
                    new TrialWindow(trial.row().spec(), rows.seconds().getOrDefault(id, List.of()), windowLength(id)));
        }
        fromSeconds(new SplittableRandom(seed));
    }

    /** In seconds, of a load whose own work decides it; empty for others. */
    private OptionalDouble windowLength(int trialId) {
        return figures(Metric.WINDOW_LENGTH, List.of(trialId))
                .mapToDouble(FigureRow::value)
                .findFirst();
    }

    /**
     * True where there are figures, none of them of services that are known to be warm, and some of services that were
     * still warming up.
     */
    static boolean isCold(List<JudgedTrial> counted) {
        return counted.stream().allMatch(t -> t.isCold() || t.isUnknown())
                && counted.stream().anyMatch(JudgedTrial::isCold);
    }

    /** True where there are figures, and of none is it known whether services were warm. */
    static boolean isUnknown(List<JudgedTrial> counted) {
        return !counted.isEmpty() && counted.stream().allMatch(JudgedTrial::isUnknown);
    }

    /** What stands in the place of a verdict where one of two sides has no figure that counts. */
    static Verdict.Kind noVerdict(List<JudgedTrial> first, List<JudgedTrial> second) {
        if (isCold(first) || isCold(second)) {
            return Verdict.Kind.COLD;
        }
        return isUnknown(first) || isUnknown(second) ? Verdict.Kind.UNKNOWN : Verdict.Kind.VOID;
    }

    List<JudgedTrial> counted() {
        return counted;
    }

    /** Restarts in which a trial of the cell ended, whatever became of it. */
    int tried() {
        return tried;
    }

    /** The fewest samples that any one restart's percentiles rest on. */
    long leastSamples() {
        return windows.values().stream().mapToLong(TrialWindow::samples).min().orElse(0);
    }

    /** Requests of the counted trials that were due and could not be sent. */
    long notSent() {
        return windows.values().stream().mapToLong(TrialWindow::notSent).sum();
    }

    /**
     * A percentile of all requests that were due, one without a right reply in time being slower than any other. Where
     * there is no such request it is the cell's own figure.
     */
    Sample ofDue(Target.Figure percentile, SplittableRandom random) {
        if (windows.values().stream().allMatch(TrialWindow::isAnswered)) {
            return of(percentile.metric());
        }
        TreeMap<Integer, Double> points = new TreeMap<>();
        List<double[]> pools = new ArrayList<>();
        byRestart().forEach((number, restart) -> {
            List<Double> measured = new ArrayList<>();
            List<Double> drawn = new ArrayList<>();
            for (JudgedTrial trial : restart) {
                TrialWindow window = windows.get(trial.row().spec().id());
                double value = window == null ? Double.NaN : window.ofDue(percentile.percent());
                if (window == null || Double.isNaN(value)) {
                    continue;
                }
                measured.add(value);
                for (int i = 0; i < Sample.POOL; i++) {
                    double one = window.drawnOfDue(percentile.percent(), random);
                    if (!Double.isNaN(one)) {
                        drawn.add(one);
                    }
                }
            }
            if (!measured.isEmpty()) {
                points.put(number, Sample.median(array(measured)));
                pools.add(array(drawn.isEmpty() ? measured : drawn));
            }
        });
        // not by Sample.of, which leaves out what is not finite
        return new Sample(
                points.keySet().stream().mapToInt(Integer::intValue).toArray(),
                points.values().stream().mapToDouble(Double::doubleValue).toArray(),
                pools,
                tried);
    }

    /** The cell's own figure of a metric: of all services where they make one sum, of a typical service otherwise. */
    Sample of(Metric metric) {
        return ofTried(metric, counted(metric));
    }

    private Sample ofTried(Metric metric, Sample sample) {
        return metric.needsValidTrial() ? sample.ofTried(tried) : sample;
    }

    private Sample counted(Metric metric) {
        return metric.sources().stream()
                .map(source -> from(source, metric))
                .filter(sample -> sample.count() > 0)
                .findFirst()
                .orElse(Sample.NONE);
    }

    private Sample from(MetricSource source, Metric metric) {
        return switch (source) {
            case MetricSource.Figures _ -> fromFigures(metric, subject -> isOf(metric, subject));
            case MetricSource.Outcomes _, MetricSource.ResponseTimes _ -> fromSeconds.getOrDefault(metric, Sample.NONE);
            case MetricSource.Histograms times -> fromHistograms(times, row -> true);
            case MetricSource.PerAnswer use -> perAnswer(use.share());
        };
    }

    /** A metric service by service, hop by hop or step by step; empty where it has no such subjects. */
    Map<String, Sample> bySubject(Metric metric) {
        Map<String, Sample> bySubject = new TreeMap<>();
        for (MetricSource source : metric.sources()) {
            switch (source) {
                case MetricSource.Figures _ -> addFigures(metric, bySubject);
                case MetricSource.Histograms times
                when metric.subject() == Metric.Subject.HOP ->
                    hops().forEach(hop -> bySubject.put(
                            hop,
                            ofTried(
                                    metric,
                                    fromHistograms(times, row -> row.subject().equals(hop)))));
                case MetricSource.Histograms _,
                        MetricSource.Outcomes _,
                        MetricSource.ResponseTimes _,
                        MetricSource.PerAnswer _ -> {
                    // Only the whole has such a figure.
                }
            }
        }
        return bySubject;
    }

    private void addFigures(Metric metric, Map<String, Sample> bySubject) {
        TreeSet<String> subjects = figures(metric, ids(metric.scope()))
                .map(FigureRow::subject)
                .filter(subject -> isOf(metric, subject) && !subject.equals(FigureRow.SYSTEM))
                .collect(Collectors.toCollection(TreeSet::new));
        if (subjects.size() > 1) {
            subjects.forEach(subject -> bySubject.put(subject, ofTried(metric, fromFigures(metric, subject::equals))));
        }
    }

    /** All response times of the counted trials, merged. */
    Distribution distribution() {
        return Distribution.merged(counted.stream()
                .flatMap(t -> rows.seconds().getOrDefault(t.row().spec().id(), List.of()).stream())
                .filter(s -> s.second() >= 0)
                .map(s -> s.responseTimes())
                .toList());
    }

    private void fromSeconds(SplittableRandom random) {
        Map<Metric, List<double[]>> pools = new EnumMap<>(Metric.class);
        Map<Metric, TreeMap<Integer, Double>> points = new EnumMap<>(Metric.class);
        byRestart().forEach((number, restart) -> {
            Map<Metric, List<Double>> measured = new EnumMap<>(Metric.class);
            Map<Metric, List<Double>> drawn = new EnumMap<>(Metric.class);
            for (JudgedTrial trial : restart) {
                TrialWindow window = windows.get(trial.row().spec().id());
                if (window == null || window.isEmpty()) {
                    continue;
                }
                window.asMeasured()
                        .forEach((m, v) -> measured.computeIfAbsent(m, k -> new ArrayList<>())
                                .add(v));
                for (int i = 0; i < Sample.POOL; i++) {
                    window.drawn(random)
                            .forEach((m, v) -> drawn.computeIfAbsent(m, k -> new ArrayList<>())
                                    .add(v));
                }
            }
            measured.forEach((metric, values) -> {
                points.computeIfAbsent(metric, k -> new TreeMap<>()).put(number, Sample.median(array(values)));
                pools.computeIfAbsent(metric, k -> new ArrayList<>()).add(array(drawn.getOrDefault(metric, values)));
            });
        });
        points.forEach((metric, values) ->
                fromSeconds.put(metric, Sample.of(values).redrawn(pools.getOrDefault(metric, List.of()))));
    }

    private Map<Integer, List<JudgedTrial>> byRestart() {
        return counted.stream()
                .collect(Collectors.groupingBy(t -> t.row().spec().restart(), TreeMap::new, Collectors.toList()));
    }

    /** @param figure of one restart's trials; NaN where they have none */
    private Sample eachRestart(ToDoubleFunction<List<JudgedTrial>> figure) {
        TreeMap<Integer, Double> points = new TreeMap<>();
        byRestart().forEach((restart, trials) -> points.put(restart, figure.applyAsDouble(trials)));
        return Sample.of(points);
    }

    private Sample perAnswer(Metric share) {
        return eachRestart(restart -> Sample.median(restart.stream()
                .mapToDouble(t -> perAnswer(share, t.row().spec().id()))
                .filter(Double::isFinite)
                .toArray()));
    }

    private double perAnswer(Metric share, int id) {
        TrialWindow window = windows.get(id);
        List<FigureRow> shares = figures(share, List.of(id))
                .filter(f -> isOf(share, f.subject()))
                .toList();
        if (window == null || shares.isEmpty() || window.answered() == 0) {
            return Double.NaN;
        }
        double cores = aggregate(share, shares) / 100;
        return cores * window.windowSeconds() * 1_000 / window.answered();
    }

    private Sample fromHistograms(MetricSource.Histograms source, Predicate<HistogramRow> wanted) {
        return eachRestart(restart -> {
            Distribution merged = Distribution.merged(restart.stream()
                    .flatMap(t -> rows.histograms().getOrDefault(t.row().spec().id(), List.of()).stream())
                    .filter(h -> h.kind() == source.kind())
                    .filter(wanted)
                    .map(HistogramRow::histogram)
                    .toList());
            return merged.isEmpty() ? Double.NaN : merged.ns(source.percentile()) / 1e6;
        });
    }

    private TreeSet<String> hops() {
        return ids().stream()
                .flatMap(id -> rows.histograms().getOrDefault(id, List.of()).stream())
                .filter(h -> h.kind() == HistogramRow.Kind.HOP)
                .map(HistogramRow::subject)
                .collect(Collectors.toCollection(TreeSet::new));
    }

    /** Bytes of a message do not depend on the load: where no trial of the cell has them, those of another load do. */
    private Sample fromFigures(Metric metric, Predicate<String> subject) {
        Sample own = fromFigures(metric, ids(metric.scope()), subject);
        return own.count() == 0 && metric.scope() == Metric.Scope.MESSAGE
                ? fromFigures(metric, idsOfMessage(), subject)
                : own;
    }

    /** One value a restart: over services first, then over the trials of that restart that carry the figure. */
    private Sample fromFigures(Metric metric, Collection<Integer> ids, Predicate<String> subject) {
        Map<Integer, List<Double>> byRestart = new TreeMap<>();
        rows.plan().stream().filter(s -> ids.contains(s.id())).forEach(spec -> {
            List<FigureRow> figures = figures(metric, List.of(spec.id()))
                    .filter(f -> subject.test(f.subject()))
                    .toList();
            if (!figures.isEmpty()) {
                byRestart
                        .computeIfAbsent(spec.restart(), r -> new ArrayList<>())
                        .add(aggregate(metric, figures));
            }
        });
        TreeMap<Integer, Double> points = new TreeMap<>();
        byRestart.forEach((restart, values) -> points.put(restart, Sample.median(array(values))));
        return Sample.of(points);
    }

    /** A figure of the whole system as it is; otherwise the sum over the services, or that of the typical one. */
    private static double aggregate(Metric metric, List<FigureRow> figures) {
        double[] system = figures.stream()
                .filter(f -> f.subject().equals(FigureRow.SYSTEM))
                .mapToDouble(FigureRow::value)
                .toArray();
        double[] each = figures.stream().mapToDouble(FigureRow::value).toArray();
        if (system.length > 0) {
            return Sample.median(system);
        }
        return metric.isSummed() ? Arrays.stream(each).sum() : Sample.median(each);
    }

    private Stream<FigureRow> figures(Metric metric, Collection<Integer> ids) {
        return ids.stream()
                .flatMap(id -> rows.figures().getOrDefault(id, List.of()).stream())
                .filter(f -> f.metric() == metric);
    }

    /** False for figures of the empty service and, unless the metric is the generator's own, for the generator's. */
    private static boolean isOf(Metric metric, String subject) {
        return !subject.equals(FigureRow.EMPTY)
                && (metric.subject() == Metric.Subject.GENERATOR || !subject.equals(Metric.Subject.GENERATOR.key()));
    }

    /** Trials whose figures are the cell's own. */
    private List<Integer> ids(Metric.Scope scope) {
        return switch (scope) {
            case BOOT -> idsOfTechnology();
            case LOAD, RUN, MESSAGE -> ids();
        };
    }

    private List<Integer> ids() {
        return counted.stream().map(t -> t.row().spec().id()).toList();
    }

    private List<Integer> idsOfTechnology() {
        return ofTechnology().map(TrialSpec::id).toList();
    }

    private List<Integer> idsOfMessage() {
        return ofTechnology()
                .filter(s -> s.message().toString().equals(cell.situation().message()))
                .map(TrialSpec::id)
                .toList();
    }

    private Stream<TrialSpec> ofTechnology() {
        return rows.plan().stream()
                .filter(s -> s.technology().equals(cell.technology())
                        && s.topology().text().equals(cell.situation().topology()));
    }

    private static double[] array(List<Double> values) {
        return values.stream().mapToDouble(Double::doubleValue).toArray();
    }
}
