package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.JudgedTrial;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
import dev.parley.analysis.TargetAnswer;
import dev.parley.analysis.Validity;
import dev.parley.model.Metric;
import dev.parley.model.Metric.Subject;
import dev.parley.model.Target;
import dev.parley.model.Technology;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/** One small table a message and load, technologies as rows, plain text at most 100 wide. */
final class TerminalTable {
    private static final int WIDTH = 100;

    /** Those that every situation has; what a load is for stands in a table of its own below. */
    private static final List<Metric> COLUMNS = Arrays.stream(Metric.values())
            .filter(metric -> metric.column().isPresent())
            .toList();

    private final Analysis analysis;

    TerminalTable(Analysis analysis) {
        this.analysis = analysis;
    }

    String text() {
        StringBuilder text = new StringBuilder();
        Set<String> notes = new LinkedHashSet<>();
        for (Situation situation : analysis.situations()) {
            text.append(title(situation)).append('\n');
            append(text, situation, COLUMNS, " ", notes);
            List<Metric> own = LoadFigures.of(analysis, situation);
            if (!own.isEmpty()) {
                append(text, situation, own, "  ", notes);
            }
            text.append('\n');
            if (situation.load().hasRate()) {
                notes.add("Under an open load req/s is the load's own, less what was not answered in time.");
                behind(situation, notes);
            }
        }
        analysis.target().ifPresent(target -> append(text, target));
        wrap(text, columns());
        notes.forEach(note -> wrap(text, note));
        Warmth.note(analysis).ifPresent(note -> wrap(text, note));
        failures().forEach(note -> wrap(text, note));
        return text.toString();
    }

    private static String title(Situation s) {
        return s.topology() + " · " + s.message() + " · " + s.load().title();
    }

    private void append(StringBuilder text, Situation situation, List<Metric> wanted, String gap, Set<String> notes) {
        List<List<String>> lines = new ArrayList<>();
        List<String> head = new ArrayList<>(List.of(""));
        boolean hasSurvivors = wanted.equals(COLUMNS)
                && analysis.summaries().stream()
                        .anyMatch(s -> decidesVoid(s.metric())
                                && !s.survivors().isEmpty()
                                && new Situation(s.topology(), s.message(), s.load()).equals(situation));
        if (hasSurvivors) {
            head.add("restarts");
        }
        wanted.forEach(metric -> head.add(head(metric)));
        lines.add(head);
        for (Technology technology : analysis.run().technologies()) {
            List<Summary> own = analysis.summaries().stream()
                    .filter(s -> s.technology().equals(technology.name()))
                    .filter(s -> new Situation(s.topology(), s.message(), s.load()).equals(situation))
                    .toList();
            if (!own.isEmpty()) {
                List<String> line = line(technology.name(), situation, wanted, own, notes);
                if (hasSurvivors) {
                    line.add(1, restarts(own));
                }
                lines.add(line);
            }
        }
        int columns = head.size();
        int[] widths = new int[columns];
        lines.forEach(line -> {
            for (int c = 0; c < columns; c++) {
                widths[c] = Math.max(widths[c], line.get(c).length());
            }
        });
        // a long name gives way to the figures
        widths[0] = Math.min(
                widths[0],
                WIDTH
                        - java.util.Arrays.stream(widths, 1, columns)
                                .map(w -> w + gap.length())
                                .sum());
        for (List<String> line : lines) {
            StringBuilder row = new StringBuilder(pad(line.getFirst(), widths[0], false));
            for (int c = 1; c < columns; c++) {
                row.append(gap).append(pad(line.get(c), widths[c], true));
            }
            text.append(row.toString().stripTrailing()).append('\n');
        }
    }

    private void behind(Situation situation, Set<String> notes) {
        for (Technology technology : analysis.run().technologies()) {
            if (analysis.fellBehind(technology.name(), situation)) {
                analysis.summary(technology.name(), situation, Metric.SUCCESS_SHARE)
                        .ifPresent(answered -> notes.add("~ " + technology.name() + ", " + situation.message() + ", "
                                + situation.load() + ": fell behind: "
                                + Figures.brief(answered.estimate().value())
                                + " % of what the load offered was answered in time"));
            }
        }
    }

    /** Who meets the target, a line each. */
    private void append(StringBuilder text, Target target) {
        wrap(text, "Target: " + target.title());
        for (Situation situation : analysis.situations()) {
            List<TargetAnswer> answers = analysis.targetAnswers().stream()
                    .filter(answer -> answer.situation().equals(situation))
                    .toList();
            if (answers.isEmpty()) {
                continue;
            }
            text.append(title(situation)).append('\n');
            int width = Math.min(
                    16,
                    answers.stream()
                            .mapToInt(answer -> answer.technology().length())
                            .max()
                            .orElse(0));
            for (TargetAnswer answer : answers) {
                wrap(
                        text,
                        "  " + pad(answer.technology(), width, false) + "  "
                                + pad(answer.kind().words(), 9, false) + "  " + answer.text());
            }
        }
        text.append('\n');
    }

    private List<String> line(
            String technology, Situation situation, List<Metric> wanted, List<Summary> own, Set<String> notes) {
        List<String> line = new ArrayList<>();
        for (Metric metric : wanted) {
            Summary summary =
                    own.stream().filter(s -> s.metric() == metric).findFirst().orElse(null);
            if (summary == null) {
                line.add(
                        LoadFigures.absence(analysis, situation, technology, metric)
                                        .isPresent()
                                ? "none"
                                : "–");
                continue;
            }
            if (summary.isCold() || summary.isUnknown()) {
                // a ratio that nobody may draw is not offered for drawing: the figures are in the report and the files
                line.add(summary.isCold() ? "cold" : "unknown");
                if (decidesVoid(metric)) {
                    notes.add("~ " + technology + ", " + summary.message() + ", " + summary.load() + ": "
                            + summary.validity());
                }
                continue;
            }
            double value = summary.estimate().value();
            line.add((metric.unit().equals("B") ? Figures.bytes(value) : Figures.brief(value))
                    + (COLUMNS.contains(metric) || summary.survivors().isEmpty()
                            ? ""
                            : " (" + summary.survivors() + ")"));
            if (decidesVoid(metric)) {
                if (summary.isVoid()) {
                    notes.add("! " + technology + ", " + summary.message() + ", " + summary.load() + ": "
                            + summary.validity());
                } else if (summary.isTooFew()) {
                    notes.add("~ " + technology + ", " + summary.message() + ", " + summary.load() + ": "
                            + summary.validity() + "; figures of half of the restarts or fewer have no verdict");
                } else if (summary.isColdStart()) {
                    notes.add("Figures of a cold start: services were not rehearsed, as the study asks.");
                } else if (!summary.isValid() && summary.restarts() < Validity.ENOUGH_RESTARTS) {
                    notes.add("Under " + Validity.ENOUGH_RESTARTS + " restarts all figures are indicative"
                            + (summary.restarts() < Validity.MIN_VERDICT_RESTARTS
                                    ? ", and under " + Validity.MIN_VERDICT_RESTARTS + " there is no verdict."
                                    : "."));
                }
            }
        }
        boolean isVoid = own.stream().anyMatch(s -> decidesVoid(s.metric()) && s.isVoid());
        boolean isOpen = own.stream().anyMatch(s -> decidesVoid(s.metric()) && !s.counts());
        line.addFirst((isVoid ? "! " : isOpen ? "~ " : "  ")
                + (technology.length() > 16 ? technology.substring(0, 15) + "…" : technology));
        return line;
    }

    /** Beside figures that do not rest on every restart there was. */
    private static String restarts(List<Summary> own) {
        return own.stream()
                .filter(s -> s.metric() == Metric.THROUGHPUT)
                .findFirst()
                .map(s -> s.survivors().isEmpty() ? Integer.toString(s.restarts()) : s.survivors())
                .orElse("");
    }

    private static boolean decidesVoid(Metric metric) {
        return metric == Metric.THROUGHPUT || metric == Metric.LATENCY_MEAN;
    }

    /** What a reader of the columns must know of their figures. */
    private String columns() {
        String means = those(Metric::isMean, TerminalTable::head, ", ");
        String ofAllServices = those(
                metric -> metric.subject() == Subject.SYSTEM, metric -> head(metric) + ": " + metric.meaning(), ". ");
        String ofOneService = those(metric -> metric.subject() == Subject.SERVICE, TerminalTable::name, ", ");
        return "Medians over restarts; " + means + ": the mean. " + ofAllServices + ". " + ofOneService
                + ": one service" + empty() + ".";
    }

    private static String those(Predicate<Metric> wanted, Function<Metric, String> text, String between) {
        return COLUMNS.stream().filter(wanted).map(text).collect(Collectors.joining(between));
    }

    private static String head(Metric metric) {
        return metric.column().orElse(metric.heading());
    }

    /** The head of a column without its unit. */
    private static String name(Metric metric) {
        return head(metric).replace(" " + metric.unit(), "");
    }

    private String empty() {
        String beside = COLUMNS.stream()
                .flatMap(metric -> analysis.summaries().stream()
                        .filter(s -> s.metric() == metric && Double.isFinite(s.empty()))
                        .limit(1))
                .map(s -> name(s.metric()) + " " + Figures.brief(s.empty()) + " "
                        + s.metric().unit())
                .collect(Collectors.joining(", "));
        return beside.isEmpty() ? "" : "; the empty service: " + beside;
    }

    private List<String> failures() {
        List<String> notes = new ArrayList<>();
        for (JudgedTrial trial : analysis.trials()) {
            if (!trial.isFinished()) {
                notes.add("! trial " + (trial.row().spec().id() + 1) + " "
                        + trial.row().state().name().toLowerCase(java.util.Locale.ROOT) + ": "
                        + trial.row().spec().technology() + ", "
                        + trial.row().spec().message() + ", "
                        + trial.row().spec().load() + ": "
                        + trial.row().message().lines().findFirst().orElse(""));
            }
        }
        if (analysis.unfinished() > 0) {
            notes.add("! " + analysis.unfinished() + " of " + analysis.plan().size() + " planned trials were not run.");
        }
        return notes;
    }

    private static void wrap(StringBuilder text, String note) {
        String rest = note;
        String indent = "";
        while (indent.length() + rest.length() > WIDTH) {
            int cut = rest.lastIndexOf(' ', WIDTH - indent.length());
            cut = cut <= 0 ? WIDTH - indent.length() : cut;
            text.append(indent).append(rest, 0, cut).append('\n');
            rest = rest.substring(cut).strip();
            indent = "  ";
        }
        text.append(indent).append(rest).append('\n');
    }

    private static String pad(String text, int width, boolean right) {
        if (text.length() > width) {
            return text.substring(0, width - 1) + "…";
        }
        String space = " ".repeat(width - text.length());
        return right ? space + text : text + space;
    }
}
