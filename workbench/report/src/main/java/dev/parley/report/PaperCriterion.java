package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.model.LibraryRow;
import dev.parley.model.Technology;
import dev.parley.report.PaperRun.PartRun;
import dev.parley.studies.Criterion;
import java.util.Comparator;
import java.util.List;

/**
 * One of the criteria by which a paper holds technologies against each other, for one of them.
 *
 * @param name in the paper's word
 * @param shows what is shown for it
 * @param theirs NaN where the paper gives none, and for a fact
 * @param fact what the technology tells of itself; empty for a figure
 */
record PaperCriterion(
        String name, String shows, String technology, double theirs, Ours ours, String unit, String fact) {
    private static final int MAX_LIBRARIES = 6;

    /** All criteria, each with every technology that the paper measured. */
    static List<PaperCriterion> of(PaperRun run) {
        List<String> technologies = run.parts().stream()
                .flatMap(part -> part.part().technologies().stream())
                .distinct()
                .toList();
        return run.paper().criteria().stream()
                .flatMap(criterion -> technologies.stream().map(technology -> of(run, criterion, technology)))
                .toList();
    }

    private static PaperCriterion of(PaperRun run, Criterion criterion, String technology) {
        boolean isFact = !criterion.fact().isEmpty();
        return new PaperCriterion(
                criterion.name(),
                criterion.shows(),
                technology,
                isFact
                        ? Double.NaN
                        : run.paper().published(criterion, technology).value(),
                isFact ? Ours.missing("a fact") : Ours.of(run.paper().measured(criterion, technology, run::measured)),
                criterion.unit(),
                isFact ? fact(run, criterion, technology) : "");
    }

    private static String fact(PaperRun run, Criterion criterion, String technology) {
        for (PartRun part : run.parts()) {
            for (Technology one :
                    part.analysis().map(a -> a.run().technologies()).orElse(List.of())) {
                if (one.name().equals(technology)) {
                    String fact = switch (criterion.fact()) {
                        case "components" -> String.join(", ", one.components());
                        case "addresses" -> one.knows();
                        default -> libraries(part.analysis().orElseThrow(), technology);
                    };
                    return fact.isEmpty() ? "none" : fact;
                }
            }
        }
        return "not measured";
    }

    /** The largest, since the rest is what these bring along. */
    private static String libraries(Analysis analysis, String technology) {
        List<LibraryRow> all = analysis.libraries().stream()
                .filter(l -> l.technology().equals(technology) && !l.name().startsWith("parley-"))
                .sorted(Comparator.comparingLong(LibraryRow::bytes).reversed())
                .toList();
        return Words.first(
                MAX_LIBRARIES,
                all.stream().map(l -> l.name() + " " + l.version()).toList());
    }
}
