package dev.parley.report;

import dev.parley.model.Run;
import dev.parley.studies.Claim;
import dev.parley.studies.Judgement;
import dev.parley.studies.Judgement.Finding;
import dev.parley.studies.Judgement.Verdict;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * The record of a run of published experiments for {@code docs/results}: one Markdown page for a reader who must choose, and beside it a
 * folder with each paper's page, figures and claims. Written from the stores; nobody edits it.
 */
public final class PaperRecord {
    private final List<PaperReport> reports;

    private PaperRecord(List<PaperReport> reports) {
        this.reports = List.copyOf(reports);
    }

    /**
     * Writes {@code NAME.md} and the folder {@code NAME/}.
     *
     * @param file a name that ends in {@code .md}
     * @return the file
     */
    public static Path write(Path file, List<PaperReport> reports) {
        Path absolute = file.toAbsolutePath();
        String name = absolute.getFileName().toString();
        Path beside = absolute.resolveSibling(name.substring(0, name.length() - ".md".length()));
        try {
            for (PaperReport report : reports) {
                report.writeAlone(Files.createDirectories(
                        beside.resolve(report.run().paper().name())));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return Report.write(
                absolute, new PaperRecord(reports).markdown(beside.getFileName().toString()));
    }

    private String markdown(String folder) {
        StringBuilder page = new StringBuilder("# Published experiments, run again\n\n");
        head(page);
        page.append("\n## In short\n\n| paper | holds | does not hold | not decided here | figures | page |\n"
                + "| --- | ---: | ---: | ---: | --- | --- |\n");
        for (PaperReport report : reports) {
            String name = report.run().paper().name();
            page.append("| " + name + " | "
                    + report.counts().values().stream().map(String::valueOf).collect(Collectors.joining(" | "))
                    + " | " + report.covered() + " | [" + name + "](" + folder + "/" + name + "/" + PaperReport.HTML
                    + "), [figures](" + folder + "/" + name + "/" + PaperReport.FIGURES + "), [claims](" + folder + "/"
                    + name + "/" + PaperReport.CLAIMS + ") |\n");
        }
        page.append(
                "\nA claim is decided only where the 95 % interval of the ratio excludes the border and every figure rests on three"
                        + " restarts at least; one that is decided only because few restarts lie close together is indicative. Machines, languages and libraries were others in the papers: order and ratio say more than size.\n");
        depends(page);
        verdict(page, "What held", Verdict.HOLDS);
        verdict(page, "What did not hold", Verdict.DOES_NOT_HOLD);
        verdict(page, "What is not decided here", Verdict.NOT_DECIDED);
        page.append(
                "\n## The order of the technologies\n\nKendall's tau of theirs and ours under the same condition: 1 for the same order,"
                        + " −1 for the opposite.\n\n| paper | metric | tau | pairs |\n| --- | --- | ---: | ---: |\n");
        for (PaperReport report : reports) {
            report.page()
                    .orders()
                    .forEach(line -> page.append(
                            "| " + report.run().paper().name() + " | " + String.join(" | ", line) + " |\n"));
        }
        parts(page);
        return page.toString();
    }

    private void head(StringBuilder page) {
        Optional<Run> first = reports.stream()
                .flatMap(r -> r.run().parts().stream())
                .flatMap(part -> part.analysis().stream())
                .map(analysis -> analysis.run())
                .min(Comparator.comparing(Run::startedAt));
        first.ifPresent(run -> page.append("Command: `" + run.command() + "`  \nBegun: " + run.startedAt()
                + "; machine: " + run.machine() + "  \nJDK: " + run.jdk() + "; JVM flags of every service: `"
                + String.join(" ", run.jvmFlags()) + "`; commit " + run.commit() + "  \n"));
        page.append("Scale "
                + reports.stream()
                        .map(r -> r.run().scale() + ": " + r.run().scale().rule())
                        .distinct()
                        .collect(Collectors.joining("; "))
                + ".\n");
    }

    /** Claims that were measured or read in more than one way: the first as the paper has it, the others below. */
    private void depends(StringBuilder page) {
        StringBuilder lines = new StringBuilder();
        for (PaperReport report : reports) {
            Map<String, List<Claim>> ways = new LinkedHashMap<>();
            for (Claim claim : report.run().paper().claims()) {
                if (!claim.beside().isEmpty()) {
                    ways.computeIfAbsent(claim.beside(), k -> new ArrayList<>()).add(claim);
                }
            }
            ways.forEach((id, others) -> {
                List<Claim> all = new ArrayList<>(report.run().paper().claims().stream()
                        .filter(c -> c.id().equals(id))
                        .toList());
                all.addAll(others);
                for (Claim claim : all) {
                    lines.append(line(report, claim, claim.beside().isEmpty() ? "" : "– "));
                }
            });
        }
        table(page, "What depends on how it is measured", lines);
    }

    private static void table(StringBuilder page, String heading, StringBuilder lines) {
        page.append("\n## " + heading + "\n\n"
                + (lines.isEmpty()
                        ? "None.\n"
                        : "| paper | conclusion | here | measured |\n| --- | --- | --- | --- |\n" + lines));
    }

    private void verdict(StringBuilder page, String heading, Verdict wanted) {
        StringBuilder lines = new StringBuilder();
        for (PaperReport report : reports) {
            for (Claim claim : report.run().paper().claims()) {
                if (judgement(report, claim).verdict() == wanted) {
                    lines.append(line(report, claim, ""));
                }
            }
        }
        table(page, heading, lines);
    }

    private static Judgement judgement(PaperReport report, Claim claim) {
        return report.page().judgements().getOrDefault(claim, Judgement.OPEN);
    }

    private static String line(PaperReport report, Claim claim, String before) {
        Judgement judgement = judgement(report, claim);
        return "| " + report.run().paper().name() + " | " + before + cell(claim.sentence()) + " (" + cell(claim.place())
                + ") | " + judgement.words() + " | " + cell(measured(claim, judgement)) + " |\n";
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
        String went = count(findings, Verdict.HOLDS) + " of " + findings.size() + " comparisons hold, "
                + count(findings, Verdict.DOES_NOT_HOLD) + " do not";
        return compared.isEmpty()
                ? went + "; " + findings.getFirst().why()
                : went + "; ratios " + Figures.brief(compared.getFirst().ratio().value()) + " to "
                        + Figures.brief(compared.getLast().ratio().value());
    }

    private static long count(List<Finding> findings, Verdict verdict) {
        return findings.stream().filter(f -> f.verdict() == verdict).count();
    }

    private void parts(StringBuilder page) {
        page.append("\n## Sittings\n\nEach was begun by one command, and ended by itself.\n\n"
                + "| paper | begun | took | commit | command |\n| --- | --- | --- | --- | --- |\n");
        for (PaperReport report : reports) {
            for (Sitting sitting : report.run().sittings()) {
                page.append("| " + report.run().paper().name() + " | " + sitting.began() + " | " + sitting.length()
                        + " | " + cell(sitting.commit()) + " | `" + cell(sitting.command()) + "` |\n");
            }
        }
        page.append("\n## How each part was measured\n\n"
                + "| part | commit | scale | restarts | warm | order |\n| --- | --- | --- | ---: | --- | --- |\n");
        for (PaperReport report : reports) {
            for (PaperRun.PartRun part : report.run().parts()) {
                part.analysis()
                        .ifPresent(analysis ->
                                page.append("| " + report.run().paper().name() + "/"
                                        + part.part().name() + " | "
                                        + cell(analysis.run().commit()) + " | "
                                        + report.run().scale() + " | " + Circumstances.restarts(analysis) + " | "
                                        + cell(Circumstances.warmth(analysis)) + " | "
                                        + cell(Circumstances.order(analysis))
                                        + part.undecided()
                                                .map(why -> "; decides nothing: " + cell(why))
                                                .orElse("")
                                        + " |\n"));
            }
        }
        page.append(
                "\n## Parts\n\n| part | in the paper | trials | void | not as published |\n| --- | --- | ---: | ---: | --- |\n");
        for (PaperReport report : reports) {
            for (PaperRun.PartRun part : report.run().parts()) {
                page.append("| " + report.run().paper().name() + "/"
                        + part.part().name() + " | "
                        + cell(part.part().place()) + " | "
                        + part.analysis()
                                .map(a -> a.trials().size() + " of " + a.plan().size() + " | "
                                        + a.trials().stream()
                                                .filter(t -> !t.isValid())
                                                .count())
                                .orElse("0 | 0")
                        + " | " + cell(part.why()) + " |\n");
            }
        }
    }

    private static String cell(String text) {
        return text.replace("|", "\\|").replace('\n', ' ');
    }
}
