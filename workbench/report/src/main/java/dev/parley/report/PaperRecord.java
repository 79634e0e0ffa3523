package dev.parley.report;

import dev.parley.model.BadInput;
import dev.parley.model.Launcher;
import dev.parley.studies.Judgement.Verdict;
import dev.parley.studies.Paper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The record of runs of published experiments for {@code docs/results}: one Markdown page for a reader who must choose,
 * and beside it a folder with each paper's results as {@link PaperFiles} writes them. Nobody edits it. The Markdown
 * page and the papers' own pages are made again from these files, so that stores need not be kept.
 */
public final class PaperRecord {
    private static final String ENDING = ".md";
    private static final String CLAIMS = "| paper | conclusion | here | measured |";

    private PaperRecord() {}

    /**
     * Writes {@code NAME/} and {@code NAME.md}, in which papers stand too that were recorded there before.
     *
     * @param file a name that ends in {@code .md}
     * @return the file
     * @throws BadInput where a paper's files of before cannot be read
     */
    public static Path write(Path file, List<PaperReport> reports) {
        try {
            for (PaperReport report : reports) {
                PaperFiles.write(
                        report.results(),
                        Files.createDirectories(
                                folder(file).resolve(report.results().paper())));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return writeMarkdown(file, read(file));
    }

    /**
     * Makes the pages of a record again: {@code NAME.md} itself and, in another folder, the papers' pages with their
     * index.
     *
     * @param file a name that ends in {@code .md}
     * @param recorded the papers that {@link #read} found there
     * @return the index
     */
    public static Path writePages(Path file, List<PaperReport> recorded, Path out) {
        try {
            for (PaperReport report : recorded) {
                report.writeAlone(
                        Files.createDirectories(out.resolve(report.results().paper())));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        writeMarkdown(file, recorded);
        return PaperReport.index(out, recorded);
    }

    private static Path writeMarkdown(Path file, List<PaperReport> recorded) {
        return Report.write(file.toAbsolutePath(), markdown(file, recorded));
    }

    /** The folder beside the page, with a folder for each paper. */
    public static Path folder(Path file) {
        return file.resolveSibling(name(file));
    }

    private static String name(Path file) {
        String name = file.getFileName().toString();
        return name.substring(0, name.length() - ENDING.length());
    }

    /**
     * The papers of a record, in the order of those that come with the workbench; others follow by name.
     *
     * @param file a name that ends in {@code .md}, with its folder beside it
     * @throws BadInput where there is no such folder, or one of its files cannot be read
     */
    public static List<PaperReport> read(Path file) {
        Path folder = folder(file);
        if (!Files.isDirectory(folder)) {
            throw new BadInput(
                    "--pages", file, "a page that parley reproduce --record wrote, with its folder " + folder);
        }
        List<Path> papers;
        try (Stream<Path> files = Files.list(folder)) {
            papers = files.filter(Files::isDirectory).toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        if (papers.isEmpty()) {
            throw new BadInput(folder.toString(), "no folder in it", "a folder for each paper");
        }
        return papers.stream()
                .map(PaperFiles::read)
                .sorted(Comparator.comparingInt(PaperRecord::place).thenComparing(PaperResults::paper))
                .map(PaperReport::new)
                .toList();
    }

    private static int place(PaperResults results) {
        int place = Paper.NAMES.indexOf(results.paper());
        return place < 0 ? Paper.NAMES.size() : place;
    }

    /** The text of {@code NAME.md}. */
    static String markdown(Path file, List<PaperReport> recorded) {
        String name = name(file);
        List<PaperResults> papers = recorded.stream().map(PaperReport::results).toList();
        return Stream.of(
                        "# Published experiments, run again\n",
                        "`" + Launcher.command("reproduce", "--pages", name + ENDING, "--out", "DIR")
                                + "` makes pages with charts from these figures, and this page again.\n",
                        table(
                                "| paper | begun | commit | scale | machine | JDK | JVM flags of every service |",
                                rows(papers, PaperRecord::begun)),
                        table(
                                "| scale | what it takes of the published plan |",
                                rows(
                                        papers,
                                        paper -> Stream.of(row(
                                                paper.head().scale(),
                                                paper.head().rule())))),
                        "## In short\n",
                        table(
                                "| paper | holds | does not hold | not decided here | figures | files |",
                                rows(papers, paper -> Stream.of(inShort(paper, name)))),
                        "A claim is decided only where the 95 % interval of the ratio excludes the border and every"
                                + " figure rests on three restarts at least; one that is decided only because few"
                                + " restarts lie close together is indicative. Machines, languages and libraries were"
                                + " others in the papers: order and ratio say more than size.\n",
                        "## What depends on how it is measured\n",
                        table(CLAIMS, rows(papers, PaperRecord::depends)),
                        "## What held\n",
                        table(CLAIMS, rows(papers, paper -> claims(paper, Verdict.HOLDS))),
                        "## What did not hold\n",
                        table(CLAIMS, rows(papers, paper -> claims(paper, Verdict.DOES_NOT_HOLD))),
                        "## What is not decided here\n",
                        table(CLAIMS, rows(papers, paper -> claims(paper, Verdict.NOT_DECIDED))),
                        "## The order of the technologies\n",
                        "Kendall's tau of theirs and ours under the same condition: 1 for the same order, −1 for the"
                                + " opposite.\n",
                        table("| paper | metric | tau | pairs |", rows(papers, PaperRecord::orders)),
                        "## Sittings\n",
                        "Each was begun by one command, and ended by itself.\n",
                        table("| paper | begun | took | commit | command |", rows(papers, PaperRecord::sittings)),
                        "## How each part was measured\n",
                        table(
                                "| part | commit | scale | restarts | warm | order |",
                                rows(papers, PaperRecord::circumstances)),
                        "## Parts\n",
                        table(
                                "| part | in the paper | trials | void | cold | unknown warmth | failed | not as"
                                        + " published |",
                                rows(papers, PaperRecord::parts)))
                .collect(Collectors.joining("\n"));
    }

    /** Papers of one scale share its row. */
    private static List<String> rows(List<PaperResults> papers, Function<PaperResults, Stream<String>> rows) {
        return papers.stream().flatMap(rows).distinct().toList();
    }

    private static String table(String columns, List<String> rows) {
        return rows.isEmpty()
                ? "None.\n"
                : columns + "\n" + columns.replaceAll("[^|]+", " --- ") + "\n" + String.join("\n", rows) + "\n";
    }

    private static String row(Object... fields) {
        return Stream.of(fields)
                .map(field -> field.toString().replace("|", "\\|").replace('\n', ' '))
                .collect(Collectors.joining(" | ", "| ", " |"));
    }

    /** The first of its runs. */
    private static Stream<String> begun(PaperResults paper) {
        return runs(paper).min(Comparator.comparing(PaperPart.Run::started)).stream()
                .map(run -> row(
                        paper.paper(),
                        run.started(),
                        run.commit(),
                        paper.head().scale(),
                        run.machine().entrySet().stream()
                                .map(fact -> fact.getKey() + ": " + fact.getValue())
                                .collect(Collectors.joining("; ")),
                        run.jdk(),
                        "`" + String.join(" ", run.jvmFlags()) + "`"));
    }

    private static Stream<PaperPart.Run> runs(PaperResults paper) {
        return paper.head().parts().stream().flatMap(part -> part.run().stream());
    }

    private static String inShort(PaperResults paper, String folder) {
        return row(
                paper.paper(),
                paper.claims(Verdict.HOLDS).size(),
                paper.claims(Verdict.DOES_NOT_HOLD).size(),
                paper.claims(Verdict.NOT_DECIDED).size(),
                paper.covered(),
                Stream.of(PaperFiles.FIGURES, PaperFiles.CLAIMS, PaperFiles.COMPARISONS, PaperFiles.CURVES)
                        .map(file ->
                                "[" + file.replace(".csv", "") + "](" + folder + "/" + paper.paper() + "/" + file + ")")
                        .collect(Collectors.joining(", ")));
    }

    /** Claims that were measured or read in more than one way: the first as the paper has it, the others below. */
    private static Stream<String> depends(PaperResults paper) {
        List<String> rows = new ArrayList<>();
        for (PaperClaim claim : paper.claims()) {
            List<PaperClaim> others = paper.claims().stream()
                    .filter(other -> other.claim().beside().equals(claim.claim().id()))
                    .toList();
            if (!others.isEmpty()) {
                rows.add(line(paper, claim, claim.isAnotherWay() ? "– " : ""));
                others.forEach(other -> rows.add(line(paper, other, "– ")));
            }
        }
        return rows.stream();
    }

    private static Stream<String> claims(PaperResults paper, Verdict wanted) {
        return paper.claims(wanted).stream().map(claim -> line(paper, claim, ""));
    }

    private static String line(PaperResults paper, PaperClaim claim, String before) {
        return row(
                paper.paper(),
                before + claim.claim().sentence() + " (" + claim.claim().place() + ")",
                claim.judgement().words(),
                claim.measured());
    }

    private static Stream<String> orders(PaperResults paper) {
        return Orders.byMetric(paper.figures()).stream()
                .map(line -> "| " + paper.paper() + " | " + String.join(" | ", line) + " |");
    }

    private static Stream<String> sittings(PaperResults paper) {
        return paper.head().sittings().stream()
                .map(sitting -> row(
                        paper.paper(),
                        sitting.began(),
                        sitting.length(),
                        sitting.commit(),
                        "`" + sitting.command() + "`"));
    }

    private static Stream<String> circumstances(PaperResults paper) {
        return paper.head().parts().stream()
                .flatMap(part -> part.run().stream()
                        .map(run -> row(
                                paper.paper() + "/" + part.name(),
                                run.commit(),
                                paper.head().scale(),
                                run.restarts(),
                                run.warmth(),
                                run.order()
                                        + (run.undecided().isEmpty() ? "" : "; decides nothing: " + run.undecided()))));
    }

    private static Stream<String> parts(PaperResults paper) {
        return paper.head().parts().stream().map(part -> {
            PaperPart.Trials trials = part.run().map(PaperPart.Run::trials).orElse(PaperPart.Trials.NONE);
            return row(
                    paper.paper() + "/" + part.name(),
                    part.place(),
                    part.run()
                            .map(run -> trials.ended() + " of " + run.planned())
                            .orElse("0"),
                    trials.voids(),
                    trials.cold(),
                    trials.unknown(),
                    trials.failed(),
                    part.why());
        });
    }
}
