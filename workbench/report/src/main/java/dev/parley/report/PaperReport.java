package dev.parley.report;

import dev.parley.studies.Judgement.Verdict;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/** What a reproduced paper came to: a page, and the files from which it can be made again. */
public final class PaperReport {
    public static final String HTML = "paper.html";
    public static final String INDEX = "index.html";

    private final PaperResults results;

    PaperReport(PaperResults results) {
        this.results = results;
    }

    public static PaperReport of(PaperRun run) {
        return new PaperReport(PaperResults.of(run));
    }

    PaperResults results() {
        return results;
    }

    /**
     * Writes {@value #HTML}, for a place where the parts' own reports stand beside it, and the files of {@link
     * PaperFiles}.
     *
     * @return the HTML file
     */
    public Path writeTo(Path folder) {
        PaperFiles.write(results, folder);
        return Report.write(folder.resolve(HTML), PaperPage.of(results, true).html());
    }

    /** Writes {@value #HTML} for a place where the parts' own reports do not stand beside it. */
    void writeAlone(Path folder) {
        Report.write(folder.resolve(HTML), PaperPage.of(results, false).html());
    }

    /** One line a paper, each with the way to its page. */
    public static Path index(Path folder, List<PaperReport> reports) {
        return Report.write(
                folder.resolve(INDEX),
                PapersPage.of(reports.stream().map(PaperReport::results).toList())
                        .html());
    }

    /** For a terminal: one line. */
    public String line() {
        StringBuilder line = new StringBuilder(results.paper() + ": ");
        for (Verdict verdict : Verdict.values()) {
            line.append(String.format(
                    Locale.ROOT, "%d %s, ", results.claims(verdict).size(), verdict.words()));
        }
        return line + results.covered();
    }
}
