package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.JudgedTrial;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
import dev.parley.analysis.Validity;
import dev.parley.model.Load;
import dev.parley.model.Metric;
import dev.parley.model.Technology;
import dev.parley.model.TrialSpec;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/** One small table a message and load, technologies as rows, plain text at most 100 wide. */
final class TerminalTable {
    private static final int WIDTH = 100;

    private record Column(String title, Metric metric) {}

    private static final List<Column> COLUMNS = List.of(
            new Column("mean ms", Metric.LATENCY_MEAN),
            new Column("p50 ms", Metric.LATENCY_MEDIAN),
            new Column("p99 ms", Metric.LATENCY_P99),
            new Column("req/s", Metric.THROUGHPUT),
            new Column("ok %", Metric.SUCCESS_SHARE),
            new Column("B out", Metric.WIRE_OUT),
            new Column("B back", Metric.WIRE_BACK),
            new Column("CPU ms", Metric.CPU_PER_REQUEST),
            new Column("mem MB", Metric.MEMORY_AFTER_LOAD),
            new Column("size MB", Metric.INSTALLED_SIZE),
            new Column("boot ms", Metric.BOOT_TIME));

    /** Figures that mean something at one rate only. */
    private static final Set<Metric> OF_ONE_RATE = Set.of(
            Metric.LATENCY_MEAN,
            Metric.LATENCY_MEDIAN,
            Metric.LATENCY_P99,
            Metric.THROUGHPUT,
            Metric.SUCCESS_SHARE);

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
            List<Column> own = LoadFigures.of(analysis, situation).stream()
                    .map(metric -> new Column(LoadFigures.title(metric), metric))
                    .toList();
            if (!own.isEmpty()) {
                append(text, situation, own, "  ");
            }
            for (Technology technology : analysis.run().technologies()) {
                remarks(technology.name(), situation, notes).forEach(remark -> wrap(text, remark));
            }
            text.append('\n');
        }
        wrap(
                text,
                "Medians over restarts; ok %: the mean. CPU ms: processor time of all services for one "
                        + "request, without that of just-in-time"
                        + " compilers. mem, size, boot: one service" + empty() + ".");
        notes.forEach(note -> wrap(text, note));
        Warmth.note(analysis).ifPresent(note -> wrap(text, note));
        failures().forEach(note -> wrap(text, note));
        return text.toString();
    }

    private static String title(Situation s) {
        return s.topology() + " · " + s.message() + " · " + s.load().title();
    }

    /** The tries of a search go at rates of their own, and the mean of all of them is the latency of none. */
    private static List<Column> columns(Situation situation) {
        return situation.load() instanceof Load.HighestRate
                ? COLUMNS.stream()
                        .filter(column -> !OF_ONE_RATE.contains(column.metric()))
                        .toList()
                : COLUMNS;
    }

    private List<Summary> of(String technology, Situation situation) {
        return HtmlPage.of(analysis, situation, technology);
    }

    private void append(StringBuilder text, Situation situation, List<Column> wanted, String gap) {
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
        wanted.forEach(c -> head.add(c.title()));
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

    private List<String> line(String technology, Situation situation, List<Column> wanted, List<Summary> own) {
        List<String> line = new ArrayList<>();
        for (Column column : wanted) {
            line.add(own.stream()
                    .filter(s -> s.metric() == column.metric())
                    .findFirst()
                    .map(summary -> cell(column, summary))
                    .orElseGet(() -> LoadFigures.absence(analysis, situation, technology, column.metric())
                                    .isPresent()
                            ? "none"
                            : "–"));
        }
        boolean isVoid = own.stream().anyMatch(s -> decidesVoid(s.metric()) && s.isVoid());
        boolean isOpen = own.stream().anyMatch(s -> decidesVoid(s.metric()) && !s.counts())
                || !uncounted(technology, situation).isEmpty();
        line.addFirst((isVoid ? "! " : isOpen ? "~ " : "  ")
                + (technology.length() > 16 ? technology.substring(0, 15) + "…" : technology));
        return line;
    }

    private static String cell(Column column, Summary summary) {
        if (summary.isCold() || summary.isUnknown()) {
            // a ratio that nobody may draw is not offered for drawing: the figures are in the report and the files
            return summary.isCold() ? "cold" : "unknown";
        }
        return (column.metric().unit().equals("B")
                        ? Figures.bytes(summary.estimate().value())
                        : LoadFigures.brief(summary))
                + (summary.isOfFewSamples() ? FEW_SAMPLES : "")
                + (COLUMNS.contains(column) || summary.survivors().isEmpty()
                        ? ""
                        : " (" + summary.survivors() + ")");
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
            if (summary.isOfFewSamples() && columns(situation).stream().anyMatch(c -> c.metric() == summary.metric())) {
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

    private String empty() {
        List<String> beside = new ArrayList<>();
        for (Metric metric :
                List.of(Metric.MEMORY_AFTER_LOAD, Metric.MEMORY_AFTER_BOOT, Metric.INSTALLED_SIZE, Metric.BOOT_TIME)) {
            analysis.summaries().stream()
                    .filter(s -> s.metric() == metric && Double.isFinite(s.empty()))
                    .findFirst()
                    .ifPresent(s -> beside.add(switch (metric) {
                                case MEMORY_AFTER_LOAD, MEMORY_AFTER_BOOT -> "mem ";
                                case INSTALLED_SIZE -> "size ";
                                default -> "boot ";
                            }
                            + Figures.brief(s.empty()) + " " + metric.unit()));
        }
        if (beside.size() == 4) {
            beside.remove(1);
        }
        return beside.isEmpty() ? "" : "; the empty service: " + String.join(", ", beside);
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
