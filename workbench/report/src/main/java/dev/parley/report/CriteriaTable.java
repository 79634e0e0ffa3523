package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.model.LibraryRow;
import dev.parley.model.Technology;
import dev.parley.report.PaperRun.PartRun;
import dev.parley.studies.Criterion;
import dev.parley.studies.Measured;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/** A paper's criteria, a line each, and a column for each technology: theirs, and ours below it. */
final class CriteriaTable {
    private static final int LIBRARIES_SHOWN = 6;

    private final PaperRun run;

    CriteriaTable(PaperRun run) {
        this.run = run;
    }

    String html() {
        List<Criterion> criteria = run.paper().criteria();
        if (criteria.isEmpty()) {
            return "";
        }
        Set<String> technologies = new LinkedHashSet<>();
        run.parts().forEach(part -> technologies.addAll(part.part().technologies()));
        long different = criteria.stream().map(Criterion::name).distinct().count();
        StringBuilder html =
                new StringBuilder("<section id=criteria><h2>Its criteria</h2>\n<p class=lead>The " + different
                        + " criteria by which the paper holds the technologies against each other: theirs, and ours below. <a class=csv download=\"criteria.csv\" href=\""
                        + Html.dataUri(csv(technologies))
                        + "\">CSV</a></p>\n<div class=scroll><table class=criteria><thead><tr>"
                        + "<th scope=col>Criterion</th><th scope=col>What</th>");
        technologies.forEach(t -> html.append("<th scope=col>" + Html.escaped(t) + "</th>"));
        html.append("</tr></thead><tbody>\n");
        String before = "";
        for (Criterion criterion : criteria) {
            html.append("<tr><th scope=row>" + (criterion.name().equals(before) ? "" : Html.escaped(criterion.name()))
                    + "</th><td>" + Html.escaped(criterion.shows()) + "</td>");
            before = criterion.name();
            for (String technology : technologies) {
                html.append(
                        criterion.fact().isEmpty()
                                ? "<td class=number><span class=interval>" + theirs(criterion, technology)
                                        + "</span><br>" + ours(criterion, technology) + "</td>"
                                : "<td><small>" + Html.escaped(fact(criterion, technology)) + "</small></td>");
            }
            html.append("</tr>\n");
        }
        return html.append("</tbody></table></div></section>\n").toString();
    }

    private String csv(Set<String> technologies) {
        List<List<String>> rows = new ArrayList<>();
        for (Criterion criterion : run.paper().criteria()) {
            for (String technology : technologies) {
                boolean isFact = !criterion.fact().isEmpty();
                Measured ours = isFact ? Measured.missing("a fact") : measured(criterion, technology);
                Measured theirs = isFact ? Measured.missing("a fact") : published(criterion, technology);
                rows.add(List.of(
                        criterion.name(),
                        criterion.shows(),
                        technology,
                        Figures.exact(theirs.value()),
                        isFact ? fact(criterion, technology) : Figures.exact(ours.value()),
                        criterion.unit()));
            }
        }
        return CsvText.of(List.of("criterion", "what", "technology", "theirs", "ours", "unit"), rows);
    }

    private String theirs(Criterion criterion, String technology) {
        Measured theirs = published(criterion, technology);
        return theirs.isMissing() ? "–" : Figures.brief(theirs.value()) + " " + Html.escaped(criterion.unit());
    }

    private String ours(Criterion criterion, String technology) {
        Measured ours = measured(criterion, technology);
        return ours.isMissing()
                ? "–<small>" + Html.escaped(ours.missing()) + "</small>"
                : "<b>" + Figures.brief(ours.value()) + "</b> " + Html.escaped(criterion.unit())
                        + PaperPage.survivors(ours);
    }

    private Measured published(Criterion criterion, String technology) {
        return run.paper().published(criterion, technology);
    }

    private Measured measured(Criterion criterion, String technology) {
        return run.paper().measured(criterion, technology, run::measured);
    }

    private String fact(Criterion criterion, String technology) {
        for (PartRun part : run.parts()) {
            for (Technology one :
                    part.analysis().map(a -> a.run().technologies()).orElse(List.of())) {
                if (one.name().equals(technology)) {
                    return switch (criterion.fact()) {
                        case "components" -> String.join(", ", one.components());
                        case "addresses" -> one.knows();
                        default -> libraries(part.analysis().orElseThrow(), technology);
                    };
                }
            }
        }
        return "not measured";
    }

    /** The largest, since the rest is what these bring along. */
    private static String libraries(Analysis analysis, String technology) {
        List<LibraryRow> all = analysis.libraries().stream()
                .filter(l -> l.technology().equals(technology) && !l.name().startsWith("parley-"))
                .sorted(java.util.Comparator.comparingLong(LibraryRow::bytes).reversed())
                .toList();
        String named = all.stream()
                .limit(LIBRARIES_SHOWN)
                .map(l -> l.name() + " " + l.version())
                .collect(Collectors.joining(", "));
        return all.size() > LIBRARIES_SHOWN ? named + " and " + (all.size() - LIBRARIES_SHOWN) + " more" : named;
    }
}
