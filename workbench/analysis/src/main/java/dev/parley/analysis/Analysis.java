package dev.parley.analysis;

import dev.parley.model.FigureRow;
import dev.parley.model.LibraryRow;
import dev.parley.model.Metric;
import dev.parley.model.Run;
import dev.parley.model.Target;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.store.RunStore;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Predicate;

/** All that a run's report says, computed once from its rows. */
public final class Analysis {
    /**
     * The metrics in which technologies are held against each other; throughput only where it is not the load that says
     * what it is.
     */
    public static final List<Metric> COMPARED =
            Arrays.stream(Metric.values()).filter(Metric::isCompared).toList();

    private final RunRows rows;
    private final Optional<Target> target;
    private final Map<Cell, List<JudgedTrial>> cells;
    private final Map<Cell, CellSamples> samples = new LinkedHashMap<>();
    private final List<Summary> summaries = new ArrayList<>();
    private final Map<Cell, Map<Metric, Summary>> byMetric = new HashMap<>();
    private final List<Summary> details = new ArrayList<>();
    private final List<Comparison> comparisons = new ArrayList<>();
    private final Map<Cell, Distribution> distributions = new LinkedHashMap<>();
    private final List<TargetAnswer> targetAnswers = new ArrayList<>();

    private Analysis(RunRows rows, Optional<Target> target) {
        this.rows = rows;
        this.target = target;
        this.cells = rows.cells();
        cells.forEach((cell, trials) -> samples.put(cell, new CellSamples(rows, cell, trials, seed(cell, "seconds"))));
        samples.forEach(this::summarise);
        samples.forEach((cell, own) -> distributions.put(cell, own.distribution()));
        situations().forEach(situation -> compare(situation, samples));
        target.ifPresent(this::answer);
    }

    /** Returns the analysis of a run whose study has no target. */
    public static Analysis of(RunStore store) {
        return of(store, Optional.empty());
    }

    /**
     * Returns the analysis of a run.
     *
     * @param target of the run's study; empty if it has none
     */
    public static Analysis of(RunStore store, Optional<Target> target) {
        return new Analysis(RunRows.of(store), target);
    }

    public Run run() {
        return rows.run();
    }

    public List<TrialSpec> plan() {
        return rows.plan();
    }

    /** Trials that ended, in the order of the plan. */
    public List<JudgedTrial> trials() {
        return rows.trials();
    }

    /** How many planned trials never ended, because the run was stopped. */
    public long unfinished() {
        return rows.plan().size() - rows.trials().size();
    }

    public List<LibraryRow> libraries() {
        return rows.libraries();
    }

    /**
     * Topologies, messages and loads of the plan: by topology, then the kind and the size of the message, closed loads
     * before open ones, the smaller before the larger.
     */
    public List<Situation> situations() {
        return cells.keySet().stream()
                .map(Cell::situation)
                .distinct()
                .sorted(java.util.Comparator.comparing(Situation::topology)
                        .thenComparing(s -> kind(s.message()))
                        .thenComparingInt(s -> size(s.message()))
                        .thenComparing(s -> s.load().isOpen())
                        .thenComparingDouble(s -> s.load().amount()))
                .toList();
    }

    /** One row for each metric of each technology in each situation, whatever became of it. */
    public List<Summary> summaries() {
        return List.copyOf(summaries);
    }

    /** One of them; empty where the metric means nothing there. */
    public Optional<Summary> summary(String technology, Situation situation, Metric metric) {
        return Optional.ofNullable(
                byMetric.getOrDefault(new Cell(technology, situation), Map.of()).get(metric));
    }

    /** The same, service by service and hop by hop. */
    public List<Summary> details() {
        return List.copyOf(details);
    }

    public List<Comparison> comparisons() {
        return List.copyOf(comparisons);
    }

    /** What the study asks each technology to reach; empty where it only compares them. */
    public Optional<Target> target() {
        return target;
    }

    /** Whether each technology meets the target, in each situation that it is asked of; empty without a target. */
    public List<TargetAnswer> targetAnswers() {
        return List.copyOf(targetAnswers);
    }

    /** True where the load has a rate, and under 95 % of its requests were answered rightly and in time. */
    public boolean fellBehind(String technology, Situation situation) {
        return situation.load().hasRate()
                && summary(technology, situation, Metric.SUCCESS_SHARE)
                        .filter(Summary::counts)
                        .filter(answered -> answered.estimate().high() < TargetJudge.KEEPS_UP)
                        .isPresent();
    }

    /** Response times over all counted trials; of nothing where none was measured. */
    public Distribution distribution(String technology, Situation situation) {
        return distributions.getOrDefault(new Cell(technology, situation), Distribution.merged(List.of()));
    }

    /** A metric restart by restart; empty where it was not measured. */
    public Optional<Redrawn> redrawn(String technology, Situation situation, Metric metric) {
        Cell cell = new Cell(technology, situation);
        return Optional.ofNullable(samples.get(cell))
                .map(own -> own.of(metric))
                .filter(sample -> sample.count() > 0)
                .map(sample -> Redrawn.of(sample, metric.isMean()));
    }

    /**
     * The same of one service, hop or step; of the mean of several, in restarts that have all of them, where {@code
     * subject} takes several.
     */
    public Optional<Redrawn> redrawn(String technology, Situation situation, Metric metric, Predicate<String> subject) {
        Cell cell = new Cell(technology, situation);
        List<Redrawn> several = new ArrayList<>();
        Optional.ofNullable(samples.get(cell))
                .map(own -> own.bySubject(metric))
                .orElse(Map.of())
                .forEach((name, sample) -> {
                    if (subject.test(name) && sample.count() > 0) {
                        several.add(Redrawn.of(sample, metric.isMean()));
                    }
                });
        return Redrawn.mean(several).filter(mean -> mean.count() > 0);
    }

    private void summarise(Cell cell, CellSamples samples) {
        for (Metric metric : Metric.values()) {
            Sample sample = samples.of(metric);
            if (sample.count() == 0 && metric.isOptional()) {
                continue;
            }
            Summary summary = summary(cell, samples, metric, metric.subject().key(), sample);
            summaries.add(summary);
            byMetric.computeIfAbsent(cell, _ -> new EnumMap<>(Metric.class)).put(metric, summary);
            samples.bySubject(metric)
                    .forEach((subject, own) -> details.add(summary(cell, samples, metric, subject, own)));
        }
    }

    private Summary summary(Cell cell, CellSamples samples, Metric metric, String subject, Sample sample) {
        return new Summary(
                cell.technology(),
                cell.situation().topology(),
                cell.situation().message(),
                cell.load(),
                metric,
                subject,
                Estimate.of(metric, sample, seed(cell, metric.key() + subject)),
                sample.count(),
                sample.tried(),
                validity(cell, samples, metric, sample),
                empty(metric).orElse(Double.NaN));
    }

    private String validity(Cell cell, CellSamples samples, Metric metric, Sample sample) {
        List<JudgedTrial> all = cells.getOrDefault(cell, List.of());
        List<JudgedTrial> counted = samples.counted();
        if (sample.count() == 0) {
            return "void: " + whyNothing(all);
        }
        if (metric.needsValidTrial() && counted.stream().noneMatch(JudgedTrial::isValid)) {
            return why(counted);
        }
        if (2 * sample.count() <= sample.tried()) {
            return Summary.TOO_FEW + sample.count() + " of " + sample.tried() + " restarts";
        }
        List<String> hints = new ArrayList<>();
        if (sample.count() < sample.tried()) {
            hints.add(sample.count() + " of " + sample.tried() + " restarts");
        } else if (sample.count() < Validity.ENOUGH_RESTARTS) {
            hints.add(sample.count() + (sample.count() == 1 ? " restart" : " restarts"));
        }
        long wanted = metric.samplesWanted();
        if (wanted > 0 && metric.subject() == Metric.Subject.CLIENT && samples.leastSamples() < wanted) {
            hints.add(samples.leastSamples() + Summary.SAMPLES_OF + wanted);
        }
        if (metric.needsValidTrial() && counted.stream().anyMatch(this::isColdStart)) {
            hints.addFirst(Summary.COLD_START);
            return String.join("; ", hints);
        }
        return hints.isEmpty() ? "valid" : "indicative: " + String.join("; ", hints);
    }

    /** Whether its services were cold because its study asks how they begin. */
    public boolean isColdStart(JudgedTrial trial) {
        TrialSpec spec = trial.row().spec();
        return Warmth.isColdStart(spec, rows.figures().getOrDefault(spec.id(), List.of()));
    }

    /**
     * What compilers took of the services' processor time in a trial's window, in percent; empty where it is not known.
     */
    public OptionalDouble compilingShare(JudgedTrial trial) {
        return Warmth.compilingShare(
                rows.figures().getOrDefault(trial.row().spec().id(), List.of()));
    }

    /** Why trials of which none is valid do not count. */
    private static String why(List<JudgedTrial> counted) {
        String why = reasons(counted);
        if (CellSamples.isCold(counted)) {
            return Summary.COLD + why.replace(TrialRow.COLD, "").replace(TrialRow.UNKNOWN, "");
        }
        return CellSamples.isUnknown(counted) ? Summary.UNKNOWN + why.replace(TrialRow.UNKNOWN, "") : "void: " + why;
    }

    private static String reasons(List<JudgedTrial> trials) {
        LinkedHashSet<String> all = new LinkedHashSet<>();
        trials.forEach(t -> all.addAll(t.reasons()));
        List<String> first = all.stream().limit(3).toList();
        return String.join("; ", first) + (all.size() > 3 ? "; and " + (all.size() - 3) + " more" : "");
    }

    private static String whyNothing(List<JudgedTrial> trials) {
        return trials.stream()
                .filter(t -> !t.isFinished())
                .map(t -> t.row().state().name().toLowerCase(java.util.Locale.ROOT)
                        + (t.row().message().isEmpty()
                                ? ""
                                : ": " + t.row().message().lines().findFirst().orElse("")))
                .findFirst()
                .orElse(trials.isEmpty() ? "not run" : "not measured");
    }

    private OptionalDouble empty(Metric metric) {
        double[] values = rows.figures().values().stream()
                .flatMap(List::stream)
                .filter(f -> f.metric() == metric && f.subject().equals(FigureRow.EMPTY))
                .mapToDouble(FigureRow::value)
                .toArray();
        return values.length == 0 ? OptionalDouble.empty() : OptionalDouble.of(Sample.median(values));
    }

    private void answer(Target asked) {
        for (Situation situation : situations()) {
            if (asked.isAskedOf(situation.load())) {
                samples.forEach((cell, own) -> {
                    if (cell.situation().equals(situation)) {
                        targetAnswers.add(judge(asked, cell, own).answer());
                    }
                });
            }
        }
    }

    private TargetJudge judge(Target asked, Cell cell, CellSamples own) {
        String validity = validity(cell, own, Metric.SUCCESS_SHARE, own.of(Metric.SUCCESS_SHARE));
        return new TargetJudge(
                asked,
                cell,
                own,
                validity,
                metric -> seed(cell, metric.key() + metric.subject().key()));
    }

    private void compare(Situation situation, Map<Cell, CellSamples> samples) {
        for (Metric metric : COMPARED) {
            if (metric == Metric.THROUGHPUT && situation.load().hasRate()) {
                continue;
            }
            Map<String, Sample> sound = new LinkedHashMap<>();
            List<String> unsound = new ArrayList<>();
            samples.forEach((cell, own) -> {
                if (cell.situation().equals(situation)) {
                    Sample sample = own.of(metric);
                    if (sample.count() > 0
                            && sample.median() > 0
                            && own.counted().stream().anyMatch(JudgedTrial::isValid)) {
                        sound.put(cell.technology(), sample);
                    } else {
                        unsound.add(cell.technology());
                    }
                }
            });
            for (Contest.Result r : new Contest(metric, seed(situation, metric.key())).of(sound)) {
                comparisons.add(new Comparison(
                        situation.topology(),
                        situation.message(),
                        situation.load().toString(),
                        metric,
                        r.first(),
                        r.second(),
                        r.ratio(),
                        r.p(),
                        Contest.TIE_BAND,
                        r.noiseFloor(),
                        r.restarts() < Validity.ENOUGH_RESTARTS,
                        r.verdict()));
            }
            List<String> all = samples.keySet().stream()
                    .filter(c -> c.situation().equals(situation))
                    .map(Cell::technology)
                    .toList();
            for (int a = 0; a < all.size(); a++) {
                for (int b = a + 1; b < all.size(); b++) {
                    if (unsound.contains(all.get(a)) || unsound.contains(all.get(b))) {
                        comparisons.add(new Comparison(
                                situation.topology(),
                                situation.message(),
                                situation.load().toString(),
                                metric,
                                all.get(a),
                                all.get(b),
                                Estimate.NONE,
                                Double.NaN,
                                Contest.TIE_BAND,
                                Double.NaN,
                                true,
                                new Verdict(
                                        CellSamples.noVerdict(
                                                counted(situation, all.get(a)), counted(situation, all.get(b))),
                                        0)));
                    }
                }
            }
        }
    }

    private List<JudgedTrial> counted(Situation situation, String technology) {
        CellSamples own = samples.get(new Cell(technology, situation));
        return own == null ? List.of() : own.counted();
    }

    private long seed(Object what, String purpose) {
        long mixed = rows.run().seed() * 0x9E3779B97F4A7C15L;
        return mixed ^ (what.toString().hashCode() * 0xD1B54A32D192ED03L) ^ purpose.hashCode();
    }

    private static String kind(String message) {
        return message.split(":", 2)[0];
    }

    private static int size(String message) {
        return dev.parley.model.MessageSpec.parse(message).size();
    }
}
