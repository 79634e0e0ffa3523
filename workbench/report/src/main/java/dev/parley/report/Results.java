package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.JudgedTrial;
import dev.parley.analysis.Situation;
import dev.parley.model.Load;
import dev.parley.model.Metric;
import dev.parley.report.Palette.Mark;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * What a run came to: sentences, one chart, and a table for each situation.
 *
 * @param findings by load, the first ones
 * @param further the same of the loads and messages that are left
 * @param basis what they rest on, as sentences
 * @param targets who meets the study's target; empty where it has none
 * @param lead what is drawn first; empty for a run without a plan
 * @param first tables of the situation that stands first
 * @param others tables of all others
 */
record Results(
        List<LoadFindings> findings,
        List<LoadFindings> further,
        List<String> basis,
        Optional<Table> targets,
        Optional<Chart> lead,
        Optional<SituationTables> first,
        List<SituationTables> others) {
    /** So many situations are told of before the first chart. */
    private static final int MAX_FIRST = 6;

    /** What one load showed, message by message. */
    record LoadFindings(String load, List<Line> lines) {}

    /** @param situation what tells it from others under the same load */
    record Line(String situation, List<String> sentences) {}

    /** @param title the message, the topology and the load */
    record SituationTables(String title, List<ResultTable> tables) {}

    static Results of(Analysis analysis, List<Mark> marks) {
        List<Situation> ordered = leadFirst(analysis.situations());
        List<SituationTables> tables = ordered.stream()
                .map(situation -> tables(analysis, situation, marks))
                .toList();
        boolean hasRatio =
                tables.stream().flatMap(some -> some.tables().stream()).anyMatch(ResultTable::hasRatio);
        return new Results(
                findings(analysis, ordered.stream().limit(MAX_FIRST).toList()),
                findings(analysis, ordered.stream().skip(MAX_FIRST).toList()),
                basis(analysis, hasRatio),
                targets(analysis),
                ordered.stream().findFirst().map(situation -> new Charts(analysis).lead(situation.load())),
                tables.stream().findFirst(),
                tables.stream().skip(1).toList());
    }

    /** Load by load. The first is the closed load with the most clients or, where none is closed, the highest rate. */
    private static List<Situation> leadFirst(List<Situation> situations) {
        List<Load> loads = situations.stream().map(Situation::load).distinct().toList();
        Optional<Load> lead = loads.stream()
                .filter(load -> !load.isOpen())
                .reduce((_, last) -> last)
                .or(() -> loads.stream().reduce((_, last) -> last));
        return Stream.concat(lead.stream(), loads.stream())
                .distinct()
                .flatMap(load ->
                        situations.stream().filter(situation -> situation.load().equals(load)))
                .toList();
    }

    private static List<LoadFindings> findings(Analysis analysis, List<Situation> situations) {
        boolean isOnOneTopology = analysis.situations().stream()
                        .map(Situation::topology)
                        .distinct()
                        .count()
                <= 1;
        Map<Load, List<Line>> byLoad = new LinkedHashMap<>();
        for (Situation situation : situations) {
            byLoad.computeIfAbsent(situation.load(), _ -> new ArrayList<>())
                    .add(new Line(
                            situation.message() + (isOnOneTopology ? "" : ", " + situation.topology()),
                            sentences(analysis, situation)));
        }
        List<LoadFindings> findings = new ArrayList<>();
        byLoad.forEach((load, lines) -> findings.add(new LoadFindings(Charts.load(load), List.copyOf(lines))));
        return List.copyOf(findings);
    }

    /** Response time always, and of the other metrics what is decided. */
    private static List<String> sentences(Analysis analysis, Situation situation) {
        List<String> sentences = new ArrayList<>();
        for (Metric metric : told(situation.load())) {
            Findings findings = Findings.of(analysis, situation, metric);
            if (metric == Metric.LATENCY_MEDIAN || findings.isDecided()) {
                sentences.add(findings.sentence());
            }
        }
        sentences.add(Findings.survivors(analysis, situation, Metric.LATENCY_MEDIAN));
        sentences.add(Findings.notCompared(analysis, situation, Metric.LATENCY_MEDIAN));
        return sentences.stream().filter(sentence -> !sentence.isEmpty()).toList();
    }

    /** Under a closed load that stays the same, throughput says what response time says. */
    private static List<Metric> told(Load load) {
        return load.isOpen() || load.isSteady()
                ? List.of(Metric.LATENCY_MEDIAN, Metric.CPU_PER_REQUEST)
                : List.of(Metric.LATENCY_MEDIAN, Metric.THROUGHPUT, Metric.CPU_PER_REQUEST);
    }

    private static List<String> basis(Analysis analysis, boolean hasRatio) {
        List<String> basis = new ArrayList<>();
        basis.add("This rests on " + Words.count(Circumstances.restarts(analysis), "restart") + "; " + trials(analysis)
                + ".");
        if (hasRatio) {
            basis.add("A ratio is the median of the ratios within each restart, with its 95 % interval, and need not be"
                    + " the quotient of the figures beside it.");
        }
        return List.copyOf(basis);
    }

    private static String trials(Analysis analysis) {
        int all = analysis.plan().size();
        long counting = analysis.trials().stream().filter(JudgedTrial::isValid).count();
        if (counting == all) {
            return all == 1 ? "its one trial counts" : "all " + all + " trials count";
        }
        List<String> parts = new ArrayList<>();
        part(parts, Warmth.cold(analysis), "cold");
        part(parts, Warmth.unknown(analysis), "of unknown warmth");
        part(parts, analysis.trials().stream().filter(JudgedTrial::isVoid).count(), "void");
        part(
                parts,
                analysis.trials().stream().filter(trial -> !trial.isFinished()).count(),
                "failed or interrupted");
        part(parts, analysis.unfinished(), "not run");
        return counting + " of " + Words.count(all, "trial") + " count (" + String.join(", ", parts) + ")";
    }

    private static Optional<Table> targets(Analysis analysis) {
        return analysis.target()
                .map(target -> new Table(
                        "Target: " + target.title(),
                        List.of("technology", "answer", "why", "message", "load"),
                        analysis.targetAnswers().stream()
                                .map(answer -> List.of(
                                        answer.technology(),
                                        answer.kind().words(),
                                        answer.text(),
                                        answer.situation().message(),
                                        answer.situation().topology() + ", "
                                                + Charts.load(answer.situation().load())))
                                .toList()));
    }

    private static void part(List<String> parts, long count, String what) {
        if (count > 0) {
            parts.add(count + " " + what);
        }
    }

    private static SituationTables tables(Analysis analysis, Situation situation, List<Mark> marks) {
        List<ResultTable> tables = new ArrayList<>();
        tables.add(ResultTable.of(analysis, situation, Analysis.COMPARED, marks));
        List<Metric> ofLoad = LoadFigures.of(analysis, situation);
        if (!ofLoad.isEmpty()) {
            tables.add(ResultTable.of(analysis, situation, ofLoad, marks));
        }
        return new SituationTables(tables.getFirst().caption(), List.copyOf(tables));
    }
}
