package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.Comparison;
import dev.parley.analysis.Estimate;
import dev.parley.analysis.JudgedTrial;
import dev.parley.analysis.Summary;
import dev.parley.analysis.TargetAnswer;
import dev.parley.model.Run;
import dev.parley.model.Technology;
import dev.parley.studies.CsvText;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import tools.jackson.databind.json.JsonMapper;

/**
 * {@code summary.csv}, {@code targets.csv} and {@code summary.json}. Columns may be added at the end; those that are
 * there stay.
 */
final class SummaryFiles {
    private static final List<String> COLUMNS = List.of(
            "technology",
            "topology",
            "message",
            "clients",
            "metric",
            "value",
            "unit",
            "low",
            "high",
            "restarts",
            "validity",
            "subject",
            "load",
            "empty",
            "tried");

    private static final List<String> TARGET_COLUMNS = List.of(
            "technology",
            "topology",
            "message",
            "load",
            "answer",
            "condition",
            "metric",
            "value",
            "unit",
            "low",
            "high",
            "limit",
            "spare",
            "why");

    private SummaryFiles() {}

    /** One row a technology × topology × message × load × metric. */
    static String csv(List<Summary> summaries) {
        return CsvText.of(COLUMNS, summaries.stream().map(SummaryFiles::fields).toList());
    }

    private static List<String> fields(Summary s) {
        return List.of(
                s.technology(),
                s.topology(),
                s.message(),
                s.clients(),
                s.metric().key(),
                Figures.exact(s.estimate().value()),
                s.metric().unit(),
                Figures.exact(s.estimate().low()),
                Figures.exact(s.estimate().high()),
                Integer.toString(s.restarts()),
                s.validity(),
                s.subject(),
                s.load().toString(),
                Figures.exact(s.empty()),
                Integer.toString(s.tried()));
    }

    /** One row a technology × topology × message × load, with the condition that decides, if one does. */
    static String targets(List<TargetAnswer> answers) {
        return CsvText.of(
                TARGET_COLUMNS, answers.stream().map(SummaryFiles::fields).toList());
    }

    private static List<String> fields(TargetAnswer a) {
        Optional<TargetAnswer.Finding> finding = a.decisive();
        return List.of(
                a.technology(),
                a.situation().topology(),
                a.situation().message(),
                a.situation().load().toString(),
                a.kind().key(),
                finding.map(f -> f.name()).orElse(""),
                finding.map(f -> f.metric().key()).orElse(""),
                finding.map(f -> Figures.exact(f.estimate().value())).orElse(""),
                finding.map(f -> f.metric().unit()).orElse(""),
                finding.map(f -> Figures.exact(f.estimate().low())).orElse(""),
                finding.map(f -> Figures.exact(f.estimate().high())).orElse(""),
                finding.map(f -> Figures.exact(f.bound())).orElse(""),
                finding.map(f -> Figures.exact(f.spare())).orElse(""),
                a.text());
    }

    static String json(Analysis analysis) {
        Map<String, Object> root = new LinkedHashMap<>();
        root.put("format", 1);
        root.put("run", run(analysis.run()));
        root.put("summary", analysis.summaries().stream().map(SummaryFiles::row).toList());
        root.put("details", analysis.details().stream().map(SummaryFiles::row).toList());
        root.put(
                "comparisons",
                analysis.comparisons().stream().map(SummaryFiles::comparison).toList());
        analysis.target().ifPresent(target -> root.put("target", target.byKey()));
        root.put(
                "targets",
                analysis.targetAnswers().stream().map(SummaryFiles::target).toList());
        root.put("trials", analysis.trials().stream().map(SummaryFiles::trial).toList());
        root.put("planned", analysis.plan().size());
        root.put("unfinished", analysis.unfinished());
        root.put(
                "libraries",
                analysis.libraries().stream()
                        .map(l -> map(
                                "technology",
                                l.technology(),
                                "name",
                                l.name(),
                                "version",
                                l.version(),
                                "licence",
                                l.licence(),
                                "bytes",
                                l.bytes()))
                        .toList());
        return JsonMapper.builder().build().writerWithDefaultPrettyPrinter().writeValueAsString(root) + "\n";
    }

    private static Map<String, Object> run(Run run) {
        return map(
                "id", run.id(),
                "startedAt", run.startedAt().toString(),
                "command", run.command(),
                "seed", run.seed(),
                "commit", run.commit(),
                "machine", run.machine(),
                "jdk", run.jdk(),
                "jvmFlags", run.jvmFlags(),
                "technologies",
                        run.technologies().stream()
                                .map(SummaryFiles::technology)
                                .toList());
    }

    private static Map<String, Object> technology(Technology t) {
        return map(
                "name", t.name(),
                "title", t.title(),
                "style", t.style().name().toLowerCase(java.util.Locale.ROOT),
                "broker", t.broker().orElse(""),
                "components", t.components(),
                "knows", t.knows(),
                "settings", t.settings());
    }

    private static Map<String, Object> row(Summary s) {
        Map<String, Object> row = map(
                "technology", s.technology(),
                "topology", s.topology(),
                "message", s.message(),
                "load", s.load().toString(),
                "metric", s.metric().key(),
                "subject", s.subject());
        row.putAll(estimate("value", s.estimate()));
        row.putAll(
                map("unit", s.metric().unit(), "restarts", s.restarts(), "tried", s.tried(), "validity", s.validity()));
        if (Double.isFinite(s.empty())) {
            row.put("empty", s.empty());
        }
        return row;
    }

    private static Map<String, Object> comparison(Comparison c) {
        Map<String, Object> row = map(
                "topology", c.topology(),
                "message", c.message(),
                "load", c.load(),
                "metric", c.metric().key(),
                "technology", c.technology(),
                "against", c.against(),
                "verdict", c.verdict().kind().name().toLowerCase(java.util.Locale.ROOT),
                "moreRestarts", c.verdict().moreRestarts(),
                "indicative", c.indicative());
        if (!c.verdict().why().isEmpty()) {
            row.put("why", c.verdict().why());
        }
        row.putAll(estimate("ratio", c.ratio()));
        if (Double.isFinite(c.p())) {
            row.put("p", c.p());
        }
        row.put("tieBand", c.tieBand());
        if (Double.isFinite(c.noiseFloor())) {
            row.put("noiseFloor", c.noiseFloor());
        }
        return row;
    }

    private static Map<String, Object> target(TargetAnswer a) {
        return map(
                "technology", a.technology(),
                "topology", a.situation().topology(),
                "message", a.situation().message(),
                "load", a.situation().load().toString(),
                "answer", a.kind().key(),
                "condition", a.decisive().map(TargetAnswer.Finding::name).orElse(""),
                "text", a.text(),
                "conditions", a.findings().stream().map(SummaryFiles::finding).toList());
    }

    private static Map<String, Object> finding(TargetAnswer.Finding f) {
        Map<String, Object> row = map(
                "name", f.name(),
                "metric", f.metric().key(),
                "answer", f.kind().key(),
                "limit", f.bound(),
                "unit", f.metric().unit());
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("value", f.estimate().value());
        figures.put("low", f.estimate().low());
        figures.put("high", f.estimate().high());
        figures.put("spare", f.spare());
        figures.forEach((name, value) -> {
            if (Double.isFinite(value)) {
                row.put(name, value);
            }
        });
        if (!f.why().isEmpty()) {
            row.put("why", f.why());
        }
        return row;
    }

    private static Map<String, Object> trial(JudgedTrial t) {
        return map(
                "id", t.row().spec().id(),
                "technology", t.row().spec().technology(),
                "topology", t.row().spec().topology().text(),
                "message", t.row().spec().message().toString(),
                "load", t.row().spec().load().toString(),
                "restart", t.row().spec().restart(),
                "state", t.row().state().name().toLowerCase(java.util.Locale.ROOT),
                "voidReasons", t.isCold() || t.isUnknown() ? List.of() : t.reasons(),
                "coldReasons", t.isCold() ? t.reasons() : List.of(),
                "unknownReasons", t.isUnknown() ? t.reasons() : List.of(),
                "whatHappened", t.row().message());
    }

    /** A figure that was not measured is absent, not null and not 0. */
    private static Map<String, Object> estimate(String name, Estimate e) {
        return e.isPresent() ? map(name, e.value(), "low", e.low(), "high", e.high()) : Map.of();
    }

    private static Map<String, Object> map(Object... pairs) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            map.put((String) pairs[i], pairs[i + 1]);
        }
        return map;
    }
}
