package dev.parley.report;

import dev.parley.studies.Curve;
import dev.parley.studies.Judgement.Verdict;
import java.util.List;

/**
 * All that was found of a paper: what its page and its rows of a record are made of. It is made from the stores of the
 * paper's parts, or read from files that were made of it.
 *
 * @param figures all that the paper gives, each once for every place where ours was measured
 * @param points of the curves
 */
record PaperResults(
        Head head,
        List<PaperClaim> claims,
        List<PaperFigure> figures,
        List<PaperCriterion> criteria,
        List<PaperPoint> points) {
    PaperResults {
        claims = List.copyOf(claims);
        figures = List.copyOf(figures);
        criteria = List.copyOf(criteria);
        points = List.copyOf(points);
    }

    /**
     * All that is no table.
     *
     * @param paper its short name
     * @param citation as a list of references has it
     * @param scale at which the published plan was carried out
     * @param rule what the scale takes of the plan
     * @param sittings in which it was run, the first first
     */
    record Head(
            String paper,
            String title,
            String citation,
            String scale,
            String rule,
            List<Curve> curves,
            List<PaperPart> parts,
            List<Sitting> sittings) {
        Head {
            curves = List.copyOf(curves);
            parts = List.copyOf(parts);
            sittings = List.copyOf(sittings);
        }
    }

    static PaperResults of(PaperRun run) {
        return new PaperResults(
                new Head(
                        run.paper().name(),
                        run.paper().title(),
                        run.paper().citation(),
                        run.scale().toString(),
                        run.scale().rule(),
                        run.paper().curves(),
                        run.parts().stream().map(PaperPart::of).toList(),
                        run.sittings()),
                run.paper().claims().stream()
                        .map(claim -> new PaperClaim(claim, claim.judge(run::measured)))
                        .toList(),
                run.paper().figures().stream()
                        .flatMap(figure -> PaperFigure.of(run, figure).stream())
                        .toList(),
                PaperCriterion.of(run),
                PaperPoint.of(run));
    }

    String paper() {
        return head.paper();
    }

    List<PaperClaim> claims(Verdict wanted) {
        return claims.stream().filter(claim -> claim.verdict() == wanted).toList();
    }

    /** Those that the paper measured. */
    List<PaperFigure> published() {
        return figures.stream().filter(figure -> !figure.theirs().isPlanned()).toList();
    }

    /** How many published figures have one of ours beside them; and of those that are only drawn. */
    String covered() {
        String drawn = share(true);
        return share(false) + " published figures have ours beside them"
                + (drawn.endsWith(" of 0") ? "" : ", and " + drawn + " that are only drawn");
    }

    private String share(boolean isDrawn) {
        List<PaperFigure> some = published().stream()
                .filter(figure -> figure.theirs().isDrawn() == isDrawn)
                .toList();
        long measured = some.stream()
                .filter(figure -> figure.ours().isMeasured())
                .map(PaperFigure::theirs)
                .distinct()
                .count();
        return measured + " of "
                + some.stream().map(PaperFigure::theirs).distinct().count();
    }
}
