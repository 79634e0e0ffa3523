package dev.parley.report;

import dev.parley.studies.Judgement.Verdict;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** What a reproduced paper came to: a page, its figures and its claims as CSV. */
public final class PaperReport {
    public static final String HTML = "paper.html";
    public static final String FIGURES = "figures.csv";
    public static final String CLAIMS = "claims.csv";
    public static final String INDEX = "index.html";

    private final PaperRun run;
    private final PaperPage page;

    private PaperReport(PaperRun run) {
        this.run = run;
        this.page = new PaperPage(run);
    }

    public static PaperReport of(PaperRun run) {
        return new PaperReport(run);
    }

    PaperRun run() {
        return run;
    }

    PaperPage page() {
        return page;
    }

    public Map<Verdict, Long> counts() {
        return page.counts();
    }

    /** How many published figures have one of ours beside them; and of those that are only drawn. */
    public String covered() {
        return share(false) + " published figures have ours beside them"
                + (share(true).endsWith(" of 0") ? "" : ", and " + share(true) + " that are only drawn");
    }

    private String share(boolean isDrawn) {
        List<PaperPage.Row> rows = page.rows().stream()
                .filter(row -> row.theirs().isDrawn() == isDrawn)
                .toList();
        long measured = rows.stream()
                .filter(PaperPage.Row::isMeasured)
                .map(PaperPage.Row::theirs)
                .distinct()
                .count();
        return measured + " of "
                + rows.stream().map(PaperPage.Row::theirs).distinct().count();
    }

    /**
     * Writes {@value #HTML}, {@value #FIGURES} and {@value #CLAIMS}.
     *
     * @return the HTML file
     */
    public Path writeTo(Path folder) {
        Report.write(folder.resolve(FIGURES), page.csv());
        Report.write(folder.resolve(CLAIMS), page.claimsCsv());
        return Report.write(folder.resolve(HTML), page.html(true));
    }

    /** The same for a place where the parts' own reports do not stand beside it. */
    void writeAlone(Path folder) {
        Report.write(folder.resolve(FIGURES), page.csv());
        Report.write(folder.resolve(CLAIMS), page.claimsCsv());
        Report.write(folder.resolve(HTML), page.html(false));
    }

    /** One line a paper, each with the way to its page. */
    public static Path index(Path folder, List<PaperReport> reports) {
        StringBuilder html = new StringBuilder(
                "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport content=\"width=device-width, initial-scale=1\">"
                        + "<meta name=color-scheme content=\"light dark\"><title>Published experiments, run again</title><style>\n"
                        + Pages.resource("page.css")
                        + "</style></head><body><header><h1>Published experiments, run again</h1></header><main>"
                        + "<table><thead><tr><th scope=col>Paper</th>");
        for (Verdict verdict : Verdict.values()) {
            html.append("<th scope=col>" + verdict.words() + "</th>");
        }
        html.append("<th scope=col>Figures</th></tr></thead><tbody>\n");
        for (PaperReport report : reports) {
            html.append("<tr><td><a href=\"" + Html.escaped(report.run.paper().name()) + "/" + HTML + "\">"
                    + Html.escaped(report.run.paper().name()) + "</a><small>"
                    + Html.escaped(report.run.paper().citation()) + "</small></td>");
            report.counts().values().forEach(n -> html.append("<td class=number>" + n + "</td>"));
            html.append("<td>" + Html.escaped(report.covered()) + "</td></tr>\n");
        }
        return Report.write(
                folder.resolve(INDEX),
                html.append("</tbody></table></main></body></html>\n").toString());
    }

    /** For a terminal: one line. */
    public String line() {
        StringBuilder line = new StringBuilder(run.paper().name() + ": ");
        counts().forEach((verdict, n) -> line.append(String.format(Locale.ROOT, "%d %s, ", n, verdict.words())));
        return line + covered();
    }
}
