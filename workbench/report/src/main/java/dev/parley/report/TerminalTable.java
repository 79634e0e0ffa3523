package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.JudgedTrial;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
import dev.parley.analysis.TargetAnswer;
import dev.parley.analysis.Validity;
import dev.parley.model.Load;
import dev.parley.model.Metric;
import dev.parley.model.Metric.Subject;
import dev.parley.model.Target;
import dev.parley.model.Technology;
import dev.parley.model.TrialSpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
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

    /** Figures that mean something at one rate only. */
    private static final Set<Metric> OF_ONE_RATE = Set.of(
            Metric.LATENCY_MEAN, Metric.LATENCY_MEDIAN, Metric.LATENCY_P99, Metric.THROUGHPUT, Metric.SUCCESS_SHARE);

    /** Characters of a technology's name that are shown, and of the mark before it. */
    private static final int NAME = 16;

    private static final int MARK = 2;

    /** Behind a percentile of fewer requests than it wants. */
    private static final String FEW_SAMPLES = "*";

    private final Analysis analysis;

    TerminalTable(Analysis analysis) {
        this.analysis = analysis;
    }

    String text() {
        StringBuilder text = new StringBuilder();
        Set<String> notes = new LinkedHashSet<>();
        for (Situation situation : analysis.situations()) {
            text.append(title(situation)).append('\n');
            append(text, situation, columns(situation), " ");
            fitting(LoadFigures.of(analysis, situation), "  ").forEach(own -> append(text, situation, own, "  "));
            for (Technology technology : analysis.run().technologies()) {
                remarks(technology.name(), situation, notes).forEach(remark -> wrap(text, remark));
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

    /** The tries of a search go at rates of their own, and the mean of all of them is the latency of none. */
    private static List<Metric> columns(Situation situation) {
        return situation.load() instanceof Load.HighestRate
                ? COLUMNS.stream()
                        .filter(metric -> !OF_ONE_RATE.contains(metric))
                        .toList()
                : COLUMNS;
    }

    private List<Summary> of(String technology, Situation situation) {
        return analysis.summaries().stream()
                .filter(s -> s.technology().equals(technology))
                .filter(s -> new Situation(s.topology(), s.message(), s.load()).equals(situation))
                .toList();
    }

    /** The same figures in as many tables as it takes for the heads of each to fit beside the longest name. */
    private static List<List<Metric>> fitting(List<Metric> wanted, String gap) {
        List<List<Metric>> tables = new ArrayList<>();
        int width = WIDTH;
        for (Metric metric : wanted) {
            int own = gap.length() + head(metric).length();
            if (width + own > WIDTH) {
                tables.add(new ArrayList<>());
                width = MARK + NAME;
            }
            tables.getLast().add(metric);
            width += own;
        }
        return tables;
    }

    private void append(StringBuilder text, Situation situation, List<Metric> wanted, String gap) {
        List<List<String>> lines = new ArrayList<>();
        List<String> head = new ArrayList<>(List.of(""));
        boolean hasSurvivors = COLUMNS.containsAll(wanted)
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
            List<Summary> own = of(technology.name(), situation);
            if (!own.isEmpty()) {
                List<String> line = line(technology.name(), situation, wanted, own);
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
                    NAME,
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

    private List<String> line(String technology, Situation situation, List<Metric> wanted, List<Summary> own) {
        List<String> line = new ArrayList<>();
        for (Metric metric : wanted) {
            line.add(own.stream()
                    .filter(s -> s.metric() == metric)
                    .findFirst()
                    .map(summary -> shown(metric, summary))
                    .orElseGet(() -> LoadFigures.absence(analysis, situation, technology, metric)
                                    .isPresent()
                            ? "none"
                            : "–"));
        }
        boolean isVoid = own.stream().anyMatch(s -> decidesVoid(s.metric()) && s.isVoid());
        boolean isOpen = own.stream().anyMatch(s -> decidesVoid(s.metric()) && !s.counts())
                || !uncounted(technology, situation).isEmpty();
        line.addFirst((isVoid ? "! " : isOpen ? "~ " : "  ")
                + (technology.length() > NAME ? technology.substring(0, NAME - 1) + "…" : technology));
        return line;
    }

    private static String shown(Metric metric, Summary summary) {
        if (summary.isCold() || summary.isUnknown()) {
            // a ratio that nobody may draw is not offered for drawing: the figures are in the report and the files
            return summary.isCold() ? "cold" : "unknown";
        }
        return (metric.unit().equals("B") ? Figures.bytes(summary.estimate().value()) : LoadFigures.brief(summary))
                + (summary.isOfFewSamples() ? FEW_SAMPLES : "")
                + (COLUMNS.contains(metric) || summary.survivors().isEmpty() ? "" : " (" + summary.survivors() + ")");
    }

    /** Trials of a row that ended and do not count. */
    private List<JudgedTrial> uncounted(String technology, Situation situation) {
        return analysis.trials().stream()
                .filter(trial -> !trial.isValid())
                .filter(trial -> trial.row().spec().technology().equals(technology))
                .filter(trial -> situation(trial.row().spec()).equals(situation))
                .toList();
    }

    private static Situation situation(TrialSpec spec) {
        return new Situation(spec.topology().text(), spec.message().toString(), spec.load());
    }

    /**
     * What the mark of a row stands for, in lines that begin with it.
     *
     * @param notes takes what is said once for all rows
     */
    private Set<String> remarks(String technology, Situation situation, Set<String> notes) {
        Set<String> remarks = new LinkedHashSet<>();
        String row = technology + ", " + situation.message() + ", " + situation.load() + ": ";
        for (Summary summary : of(technology, situation)) {
            if (summary.isOfFewSamples() && columns(situation).contains(summary.metric())) {
                notes.add(FEW_SAMPLES + " Of under 1 000 requests in some restart: a few of them make this percentile,"
                        + " and of under 100 the slowest alone.");
            }
            if (!decidesVoid(summary.metric())) {
                continue;
            }
            if (summary.isVoid()) {
                remarks.add("! " + row + summary.validity());
            } else if (summary.isCold() || summary.isUnknown()) {
                remarks.add("~ " + row + summary.validity());
            } else {
                if (summary.isTooFew()) {
                    remarks.add("~ " + row + summary.validity()
                            + "; figures of half of the restarts or fewer have no verdict");
                } else if (summary.isColdStart()) {
                    notes.add("Figures of a cold start: services were not rehearsed, as the study asks.");
                } else if (!summary.isValid() && summary.restarts() < Validity.ENOUGH_RESTARTS) {
                    notes.add("Under " + Validity.ENOUGH_RESTARTS + " restarts all figures are indicative"
                            + (summary.restarts() < Validity.MIN_VERDICT_RESTARTS
                                    ? ", and under " + Validity.MIN_VERDICT_RESTARTS + " there is no verdict."
                                    : "."));
                }
                leftOut(technology, situation).ifPresent(why -> remarks.add("~ " + row + why));
            }
        }
        return remarks;
    }

    /** The trials that a row's figures are without, and why; what failed is told with all that failed. */
    private Optional<String> leftOut(String technology, Situation situation) {
        String why = uncounted(technology, situation).stream()
                .filter(JudgedTrial::isFinished)
                .map(trial -> "restart " + trial.row().spec().restart() + " is " + Warmth.word(analysis, trial) + ": "
                        + Warmth.why(trial))
                .collect(Collectors.joining("; "));
        return why.isEmpty() ? Optional.empty() : Optional.of(why);
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
