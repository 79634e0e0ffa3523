package dev.parley.report;

import dev.parley.model.BadInput;
import dev.parley.model.Run;
import dev.parley.studies.Claim;
import dev.parley.studies.Judgement;
import dev.parley.studies.Judgement.Finding;
import dev.parley.studies.Judgement.Verdict;
import dev.parley.studies.Paper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.json.JsonMapper;

/**
 * The record of runs of published experiments for {@code docs/results}: one Markdown page for a reader who must choose,
 * and beside it a folder with each paper's page, figures, claims and rows of the Markdown page. Written from the
 * stores; nobody edits it. Papers that were recorded before keep their rows, so that stores need not be kept until the
 * last paper has been run.
 */
public final class PaperRecord {
    /** A paper's rows of the Markdown page, so that the page can be written again without the paper's stores. */
    static final String ROWS = "record.json";

    private static final JsonMapper JSON = JsonMapper.builder().build();

    private PaperRecord() {}

    /** A table of the page. Links to a paper's files are the last column of {@link #IN_SHORT}, and are not kept. */
    private enum Table {
        RUNS("", "", "| paper | begun | commit | scale | machine | JDK | JVM flags of every service |", ""),
        SCALES("", "", "| scale | what it takes of the published plan |", ""),
        IN_SHORT(
                "In short",
                "",
                "| paper | holds | does not hold | not decided here | figures | page |",
                "A claim is decided only where the 95 % interval of the ratio excludes the border and every figure"
                        + " rests on three restarts at least; one that is decided only because few restarts lie close"
                        + " together is indicative. Machines, languages and libraries were others in the papers: order"
                        + " and ratio say more than size."),
        DEPENDS("What depends on how it is measured", "", "| paper | conclusion | here | measured |", ""),
        HELD("What held", "", "| paper | conclusion | here | measured |", ""),
        NOT_HELD("What did not hold", "", "| paper | conclusion | here | measured |", ""),
        NOT_DECIDED("What is not decided here", "", "| paper | conclusion | here | measured |", ""),
        ORDERS(
                "The order of the technologies",
                "Kendall's tau of theirs and ours under the same condition: 1 for the same order, −1 for the opposite.",
                "| paper | metric | tau | pairs |",
                ""),
        SITTINGS(
                "Sittings",
                "Each was begun by one command, and ended by itself.",
                "| paper | begun | took | commit | command |",
                ""),
        CIRCUMSTANCES("How each part was measured", "", "| part | commit | scale | restarts | warm | order |", ""),
        PARTS("Parts", "", "| part | in the paper | trials | void | not as published |", "");

        private final String heading;
        private final String before;
        private final String columns;
        private final String after;

        Table(String heading, String before, String columns, String after) {
            this.heading = heading;
            this.before = before;
            this.columns = columns;
            this.after = after;
        }

        String markdown(List<String> rows) {
            if (heading.isEmpty() && rows.isEmpty()) {
                return "";
            }
            String text = heading.isEmpty() ? "" : "## " + heading + "\n\n";
            text += before.isEmpty() ? "" : before + "\n\n";
            text += rows.isEmpty()
                    ? "None.\n"
                    : columns + "\n" + columns.replaceAll("[^|]+", " --- ") + "\n" + String.join("\n", rows) + "\n";
            return text + (after.isEmpty() ? "" : "\n" + after + "\n");
        }
    }

    /** @param rows of each table, in Markdown */
    private record Chapter(String paper, Map<Table, List<String>> rows) {}

    /**
     * Writes {@code NAME/} and {@code NAME.md}, in which papers stand too that were recorded there before.
     *
     * @param file a name that ends in {@code .md}
     * @return the file
     * @throws BadInput where a paper's rows of before cannot be read
     */
    public static Path write(Path file, List<PaperReport> reports) {
        Path absolute = file.toAbsolutePath();
        String name = absolute.getFileName().toString();
        Path beside = absolute.resolveSibling(name.substring(0, name.length() - ".md".length()));
        try {
            for (PaperReport report : reports) {
                Path own = Files.createDirectories(
                        beside.resolve(report.run().paper().name()));
                report.writeAlone(own);
                Chapter chapter = new Chapter(report.run().paper().name(), rows(report));
                Report.write(
                        own.resolve(ROWS), JSON.writerWithDefaultPrettyPrinter().writeValueAsString(chapter) + "\n");
            }
            return Report.write(
                    absolute, markdown(chapters(beside), beside.getFileName().toString()));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** In the order of the papers that come with the workbench; others follow by name. */
    private static List<Chapter> chapters(Path folder) throws IOException {
        List<Path> files;
        try (Stream<Path> papers = Files.list(folder)) {
            files = papers.map(paper -> paper.resolve(ROWS))
                    .filter(Files::isRegularFile)
                    .toList();
        }
        List<Chapter> chapters = new ArrayList<>();
        for (Path file : files) {
            try {
                chapters.add(JSON.readValue(Files.readString(file), Chapter.class));
            } catch (JacksonException e) {
                throw new BadInput(
                        file.toString(),
                        String.valueOf(e.getOriginalMessage()),
                        "rows of a paper as parley reproduce --record writes them; without that file the page leaves"
                                + " its paper out");
            }
        }
        chapters.sort(Comparator.<Chapter>comparingInt(
                        c -> Paper.NAMES.contains(c.paper()) ? Paper.NAMES.indexOf(c.paper()) : Paper.NAMES.size())
                .thenComparing(Chapter::paper));
        return chapters;
    }

    private static String markdown(List<Chapter> chapters, String folder) {
        List<String> tables = new ArrayList<>();
        for (Table table : Table.values()) {
            Set<String> rows = new LinkedHashSet<>();
            for (Chapter chapter : chapters) {
                for (String row : chapter.rows().getOrDefault(table, List.of())) {
                    rows.add(table == Table.IN_SHORT ? row + links(folder + "/" + chapter.paper()) : row);
                }
            }
            tables.add(table.markdown(List.copyOf(rows)));
        }
        return "# Published experiments, run again\n\n" + String.join("\n", tables);
    }

    private static String links(String folder) {
        return " [page](" + folder + "/" + PaperReport.HTML + "), [figures](" + folder + "/" + PaperReport.FIGURES
                + "), [claims](" + folder + "/" + PaperReport.CLAIMS + ") |";
    }

    private static Map<Table, List<String>> rows(PaperReport report) {
        Map<Table, List<String>> rows = new EnumMap<>(Table.class);
        String name = report.run().paper().name();
        rows.put(Table.RUNS, run(report));
        rows.put(
                Table.SCALES,
                List.of(row(report.run().scale(), report.run().scale().rule())));
        rows.put(
                Table.IN_SHORT,
                List.of("| " + name + " | "
                        + report.counts().values().stream().map(String::valueOf).collect(Collectors.joining(" | "))
                        + " | " + report.covered() + " |"));
        rows.put(Table.DEPENDS, depends(report));
        rows.put(Table.HELD, claims(report, Verdict.HOLDS));
        rows.put(Table.NOT_HELD, claims(report, Verdict.DOES_NOT_HOLD));
        rows.put(Table.NOT_DECIDED, claims(report, Verdict.NOT_DECIDED));
        rows.put(
                Table.ORDERS,
                report.page().orders().stream()
                        .map(line -> "| " + name + " | " + String.join(" | ", line) + " |")
                        .toList());
        rows.put(
                Table.SITTINGS,
                report.run().sittings().stream()
                        .map(sitting -> row(
                                name,
                                sitting.began(),
                                sitting.length(),
                                sitting.commit(),
                                "`" + sitting.command() + "`"))
                        .toList());
        rows.put(Table.CIRCUMSTANCES, circumstances(report));
        rows.put(Table.PARTS, parts(report));
        return rows;
    }

    private static List<String> run(PaperReport report) {
        return report.run().parts().stream()
                .flatMap(part -> part.analysis().stream())
                .map(analysis -> analysis.run())
                .min(Comparator.comparing(Run::startedAt))
                .map(run -> row(
                        report.run().paper().name(),
                        run.startedAt(),
                        run.commit(),
                        report.run().scale(),
                        run.machine(),
                        run.jdk(),
                        "`" + String.join(" ", run.jvmFlags()) + "`"))
                .stream()
                .toList();
    }

    /** Claims that were measured or read in more than one way: the first as the paper has it, the others below. */
    private static List<String> depends(PaperReport report) {
        List<String> rows = new ArrayList<>();
        Map<String, List<Claim>> ways = new LinkedHashMap<>();
        for (Claim claim : report.run().paper().claims()) {
            if (!claim.beside().isEmpty()) {
                ways.computeIfAbsent(claim.beside(), k -> new ArrayList<>()).add(claim);
            }
        }
        ways.forEach((id, others) -> {
            report.run().paper().claims().stream()
                    .filter(claim -> claim.id().equals(id))
                    .forEach(
                            claim -> rows.add(line(report, claim, claim.beside().isEmpty() ? "" : "– ")));
            others.forEach(claim -> rows.add(line(report, claim, "– ")));
        });
        return rows;
    }

    private static List<String> claims(PaperReport report, Verdict wanted) {
        return report.run().paper().claims().stream()
                .filter(claim -> judgement(report, claim).verdict() == wanted)
                .map(claim -> line(report, claim, ""))
                .toList();
    }

    private static Judgement judgement(PaperReport report, Claim claim) {
        return report.page().judgements().getOrDefault(claim, Judgement.OPEN);
    }

    private static String line(PaperReport report, Claim claim, String before) {
        Judgement judgement = judgement(report, claim);
        return row(
                report.run().paper().name(),
                before + claim.sentence() + " (" + claim.place() + ")",
                judgement.words(),
                measured(claim, judgement));
    }

    /** The comparison itself where there is one; of many how they went, and the two furthest apart. */
    private static String measured(Claim claim, Judgement judgement) {
        List<Finding> findings = judgement.findings();
        if (findings.isEmpty()) {
            return claim.note();
        }
        if (findings.size() == 1) {
            return findings.getFirst().why();
        }
        List<Finding> compared = findings.stream()
                .filter(f -> !f.ratio().isMissing())
                .sorted(Comparator.comparingDouble(f -> f.ratio().value()))
                .toList();
        String went = judgement.count(Verdict.HOLDS) + " of " + findings.size() + " comparisons hold, "
                + judgement.count(Verdict.DOES_NOT_HOLD) + " do not";
        return compared.isEmpty()
                ? went + "; " + findings.getFirst().why()
                : went + "; ratios " + Figures.brief(compared.getFirst().ratio().value()) + " to "
                        + Figures.brief(compared.getLast().ratio().value());
    }

    private static List<String> circumstances(PaperReport report) {
        return report.run().parts().stream()
                .flatMap(part -> part.analysis().stream()
                        .map(analysis -> row(
                                place(report, part),
                                analysis.run().commit(),
                                report.run().scale(),
                                Circumstances.restarts(analysis),
                                Circumstances.warmth(analysis),
                                Circumstances.order(analysis)
                                        + part.undecided()
                                                .map(why -> "; decides nothing: " + why)
                                                .orElse(""))))
                .toList();
    }

    private static List<String> parts(PaperReport report) {
        return report.run().parts().stream()
                .map(part -> row(
                        place(report, part),
                        part.part().place(),
                        part.analysis()
                                .map(a -> a.trials().size() + " of " + a.plan().size())
                                .orElse("0"),
                        part.analysis()
                                .map(a -> a.trials().stream()
                                        .filter(t -> !t.isValid())
                                        .count())
                                .orElse(0L),
                        part.why()))
                .toList();
    }

    private static String place(PaperReport report, PaperRun.PartRun part) {
        return report.run().paper().name() + "/" + part.part().name();
    }

    private static String row(Object... cells) {
        return Stream.of(cells)
                .map(cell -> cell.toString().replace("|", "\\|").replace('\n', ' '))
                .collect(Collectors.joining(" | ", "| ", " |"));
    }
}
