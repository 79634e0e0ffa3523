package dev.parley.report;

import dev.parley.report.PaperRun.Found;
import dev.parley.report.PaperRun.Place;
import dev.parley.studies.FigureQuery;
import dev.parley.studies.PublishedFigure;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A published figure beside one of ours.
 *
 * @param part in which ours was measured; empty where it was not, and so for the load
 * @param load ours, which stands for the paper's
 */
record PaperFigure(PublishedFigure theirs, String part, String load, Ours ours) {
    /** One for each place where the figure's condition was measured; one without a figure of ours where nowhere. */
    static List<PaperFigure> of(PaperRun run, PublishedFigure figure) {
        if (figure.isPlanned()) {
            return List.of(without(figure, "what the paper set"));
        }
        if (figure.technology().isEmpty()) {
            return List.of(without(figure, "of no one technology"));
        }
        List<String> technologies = List.of(figure.technology().split("/", 2));
        List<Place> places = run.places(query(figure, technologies.getFirst())).stream()
                .filter(place -> place.run().measures(technologies))
                .toList();
        FigureQuery query = query(figure, figure.technology());
        if (places.isEmpty()) {
            return List.of(new PaperFigure(figure, "", "", Ours.of(run.measured(query))));
        }
        return places.stream()
                .map(place -> {
                    Found found = run.found(place, query);
                    return new PaperFigure(
                            figure,
                            place.run().part().name(),
                            place.situation().load().toString(),
                            Ours.of(found.figure().times(figure.factor()), found.validity()));
                })
                .toList();
    }

    private static PaperFigure without(PublishedFigure figure, String why) {
        return new PaperFigure(figure, "", "", Ours.missing(why));
    }

    private static FigureQuery query(PublishedFigure figure, String technology) {
        Map<String, String> conditions = new LinkedHashMap<>();
        conditions.put("part", figure.part());
        conditions.put("topology", figure.topology());
        conditions.put("message", figure.message());
        conditions.put("load", figure.load());
        conditions.put("subject", figure.subject());
        conditions.put("technology", technology);
        conditions.values().removeIf(String::isEmpty);
        return new FigureQuery(figure.metric(), conditions);
    }

    /** True where the two may be held against each other. */
    boolean isBoth() {
        return ours.decides() && !theirs.isDrawn();
    }

    /**
     * Ours over theirs; NaN where they cannot be held against each other, and of percents, whose quotient says nothing.
     */
    double ratio() {
        return isBoth() && !theirs.unit().equals("%") ? ours.value() / theirs.value() : Double.NaN;
    }
}
