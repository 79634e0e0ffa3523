package dev.parley.report;

import dev.parley.studies.Judgement.Verdict;
import java.util.List;

/** All that {@code index.html} says of reproduced papers. The template {@code papers} writes it. */
record PapersPage(Frame frame, List<Line> lines) {
    /**
     * One paper.
     *
     * @param page link to its page
     */
    record Line(String paper, String page, String citation, List<Integer> counts, String covered) {}

    static PapersPage of(List<PaperResults> papers) {
        return new PapersPage(
                new Frame("Published experiments, run again", Pages.resource("page.css"), "", List.of()),
                papers.stream().map(PapersPage::line).toList());
    }

    private static Line line(PaperResults results) {
        return new Line(
                results.paper(),
                results.paper() + "/" + PaperReport.HTML,
                results.head().citation(),
                List.of(Verdict.values()).stream()
                        .map(verdict -> results.claims(verdict).size())
                        .toList(),
                results.covered());
    }

    List<String> verdicts() {
        return List.of(Verdict.values()).stream().map(Verdict::words).toList();
    }

    String html() {
        return Pages.text("papers", this);
    }
}
