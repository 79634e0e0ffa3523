package dev.parley.report;

import dev.parley.studies.Agreement;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/** Whether theirs and ours put technologies, or else conditions, in the same order. */
final class Orders {
    private Orders() {}

    /** Metric, Kendall's tau, number of pairs. */
    static List<List<String>> byMetric(List<PaperFigure> rows) {
        Map<String, List<PaperFigure>> byMetric = rows.stream()
                .filter(r -> r.isBoth() && !isRatio(r))
                .collect(Collectors.groupingBy(r -> r.theirs().metric(), LinkedHashMap::new, Collectors.toList()));
        List<List<String>> lines = new ArrayList<>();
        byMetric.forEach((metric, some) -> {
            Agreement agreement = Agreement.of(groups(some));
            if (agreement.pairs() > 0) {
                lines.add(List.of(metric, tau(agreement), Integer.toString(agreement.pairs())));
            }
        });
        return lines;
    }

    /** A figure that holds one technology against another is a figure of neither. */
    private static boolean isRatio(PaperFigure figure) {
        return figure.theirs().technology().contains("/");
    }

    /** Figures of one condition and metric, one of each technology. */
    private static List<List<Agreement.Pair>> groups(List<PaperFigure> some) {
        return some.stream()
                .filter(r -> r.isBoth() && !isRatio(r))
                .collect(Collectors.groupingBy(
                        r -> List.of(
                                r.theirs().metric(),
                                r.theirs().topology(),
                                r.theirs().message(),
                                r.theirs().load(),
                                r.theirs().subject(),
                                r.theirs().part(),
                                r.part(),
                                r.load()),
                        LinkedHashMap::new,
                        Collectors.toMap(
                                r -> r.theirs().technology(),
                                r -> new Agreement.Pair(
                                        r.theirs().value(), r.ours().value()),
                                (a, b) -> a,
                                LinkedHashMap::new)))
                .values()
                .stream()
                .map(of -> List.copyOf(of.values()))
                .toList();
    }

    /** In words, for one table. */
    static String of(List<PaperFigure> own) {
        Agreement technologies = Agreement.of(groups(own));
        if (technologies.pairs() > 0) {
            return "order of technologies: tau " + tau(technologies);
        }
        Map<List<String>, List<Agreement.Pair>> byMetric = own.stream()
                .filter(PaperFigure::isBoth)
                .collect(Collectors.groupingBy(
                        r -> List.of(r.theirs().metric(), r.part(), r.theirs().technology()),
                        LinkedHashMap::new,
                        Collectors.mapping(
                                r -> new Agreement.Pair(
                                        r.theirs().value(), r.ours().value()),
                                Collectors.toList())));
        Agreement conditions = Agreement.of(List.copyOf(byMetric.values()));
        return conditions.pairs() > 0 ? "order of conditions: tau " + tau(conditions) : "";
    }

    private static String tau(Agreement agreement) {
        return Double.isNaN(agreement.tau())
                ? "none (ties)"
                : String.format(Locale.ROOT, "%.2f", agreement.tau()).replace('-', '−');
    }
}
