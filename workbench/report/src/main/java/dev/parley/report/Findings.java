package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.Comparison;
import dev.parley.analysis.Estimate;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Summary;
import dev.parley.analysis.Verdict.Kind;
import dev.parley.model.Metric;
import dev.parley.model.Technology;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What the comparisons of one metric in one situation have decided, as a sentence. All is told against one technology,
 * the leader. A ratio stands in the sentence only where it is decided; what is not decided is said not to be.
 *
 * @param counted technologies whose figures count, the best one first
 * @param comparisons of this metric in this situation
 * @param restarts that the figures rest on at the least
 */
record Findings(Metric metric, List<Ranked> counted, List<Comparison> comparisons, int restarts) {
    /** More technologies than these are not named one by one. */
    private static final int MAX_NAMED = 5;

    /** So many names of one list are told. */
    private static final int MAX_LISTED = 3;

    /** A technology and its figure. */
    record Ranked(String technology, Estimate estimate) {}

    Findings {
        counted = List.copyOf(counted);
        comparisons = List.copyOf(comparisons);
    }

    static Findings of(Analysis analysis, Situation situation, Metric metric) {
        List<Summary> counted = Ranking.technologies(analysis, situation, metric).stream()
                .flatMap(name -> analysis.summary(name, situation, metric).stream())
                .filter(summary -> VerdictWords.uncounted(summary).isEmpty())
                .toList();
        return new Findings(
                metric,
                counted.stream()
                        .map(summary -> new Ranked(summary.technology(), summary.estimate()))
                        .toList(),
                comparisons(analysis, situation, metric),
                counted.stream().mapToInt(Summary::restarts).min().orElse(0));
    }

    static List<Comparison> comparisons(Analysis analysis, Situation situation, Metric metric) {
        return analysis.comparisons().stream()
                .filter(c -> c.metric() == metric
                        && c.topology().equals(situation.topology())
                        && c.message().equals(situation.message())
                        && c.load().equals(situation.load().toString()))
                .toList();
    }

    /** Which technologies stand in no comparison, and why; empty where all do. */
    static String notCompared(Analysis analysis, Situation situation, Metric metric) {
        Map<String, List<String>> byReason = new LinkedHashMap<>();
        for (Technology technology : analysis.run().technologies()) {
            analysis.summary(technology.name(), situation, metric)
                    .map(VerdictWords::uncounted)
                    .filter(why -> !why.isEmpty())
                    .ifPresent(why -> byReason.computeIfAbsent(why, _ -> new ArrayList<>())
                            .add(technology.name()));
        }
        return byReason.isEmpty()
                ? ""
                : "Not compared: "
                        + byReason.entrySet().stream()
                                .map(reason ->
                                        Words.first(MAX_LISTED, reason.getValue()) + " (" + reason.getKey() + ")")
                                .collect(Collectors.joining(", "))
                        + ".";
    }

    /** Which technologies count in some of the restarts only, and in how many; empty where all count in all. */
    static String survivors(Analysis analysis, Situation situation, Metric metric) {
        List<String> some = analysis.run().technologies().stream()
                .flatMap(technology -> analysis.summary(technology.name(), situation, metric).stream())
                .filter(summary -> summary.counts() && !summary.survivors().isEmpty())
                .map(summary -> summary.technology() + " (" + summary.survivors() + ")")
                .toList();
        return some.isEmpty() ? "" : "Of some restarts only: " + Words.first(MAX_LISTED, some) + ".";
    }

    /** True where some comparison of technologies that count is decided. */
    boolean isDecided() {
        return comparisons.stream().anyMatch(this::isDecided);
    }

    private boolean isDecided(Comparison comparison) {
        return VerdictWords.isDecided(comparison) && counts(comparison.technology()) && counts(comparison.against());
    }

    private boolean counts(String technology) {
        return counted.stream().anyMatch(ranked -> ranked.technology().equals(technology));
    }

    /** What the metric says, after its title and a colon. */
    String sentence() {
        return metric.title() + ": " + String.join("; ", clauses()) + ".";
    }

    private List<String> clauses() {
        if (counted.isEmpty()) {
            return List.of("no figure counts");
        }
        if (counted.size() == 1) {
            Ranked only = counted.getFirst();
            return List.of(
                    only.technology() + " has " + Figures.brief(only.estimate().value()) + " " + metric.unit()
                            + " (" + Figures.brief(only.estimate().low()) + " to "
                            + Figures.brief(only.estimate().high()) + ")");
        }
        if (!isDecided()) {
            List<Comparison> all = counted.stream()
                    .flatMap(ranked -> against(ranked.technology()))
                    .toList();
            return List.of("nothing is decided", VerdictWords.whatDecides(all, restarts));
        }
        String leader = leader();
        List<Comparison> rivals = counted.stream()
                .flatMap(ranked -> held(ranked.technology(), leader).stream())
                .toList();
        List<String> group = group(leader);
        List<Comparison> different =
                rivals.stream().filter(VerdictWords::isDifference).toList();
        List<Comparison> open =
                rivals.stream().filter(rival -> !VerdictWords.isDecided(rival)).toList();
        boolean isAlone = group.size() == 1
                && different.size() == counted.size() - 1
                && different.stream().allMatch(rival -> rival.verdict().kind() == Kind.WORSE);
        List<String> clauses = new ArrayList<>();
        if (group.size() > 1) {
            clauses.add(Words.first(MAX_LISTED, group) + " are alike");
        } else if (isAlone) {
            clauses.add(leader + " " + Phrase.of(metric).best());
        }
        clauses.addAll(differences(different, isAlone ? "" : " as " + leader));
        List<String> alsoAlike = names(
                rivals, rival -> rival.verdict().kind() == Kind.EQUIVALENT && !group.contains(rival.technology()));
        if (!alsoAlike.isEmpty()) {
            clauses.add(Words.first(MAX_LISTED, alsoAlike) + (alsoAlike.size() == 1 ? " is" : " are") + " alike with "
                    + leader + ", and not shown to be with all of these");
        }
        if (!open.isEmpty()) {
            clauses.add(Words.first(MAX_LISTED, names(open, _ -> true)) + (open.size() == 1 ? " is" : " are")
                    + " undecided against " + leader + " (" + VerdictWords.whatDecides(open, restarts) + ")");
        }
        return clauses;
    }

    /** One clause, or none: of few technologies it tells each, of many the next and the last. */
    private List<String> differences(List<Comparison> different, String leader) {
        List<String> clauses = new ArrayList<>();
        if (different.isEmpty()) {
            return clauses;
        }
        Phrase phrase = Phrase.of(metric);
        Comparison next = different.getFirst();
        clauses.add(next.technology() + " " + phrase.verb() + " " + times(next) + " " + phrase.as() + leader
                + interval(next));
        List<Comparison> others = different.subList(1, different.size());
        if (counted.size() <= MAX_NAMED) {
            others.forEach(rival -> clauses.add(rival.technology() + " " + times(rival) + interval(rival)));
        } else if (!others.isEmpty()) {
            Comparison last = others.getLast();
            int between = others.size() - 1;
            clauses.add((between == 0 ? "" : between + (between == 1 ? " lies" : " lie") + " between, and ")
                    + last.technology() + " comes last with " + times(last) + interval(last));
        }
        return List.of(String.join(", ", clauses));
    }

    private static String times(Comparison comparison) {
        return Figures.ratio(comparison.ratio().value()) + " times";
    }

    /** An interval that rounds to the ratio itself says nothing more. */
    private static String interval(Comparison comparison) {
        String interval = Figures.interval(comparison.ratio());
        String ratio = Figures.ratio(comparison.ratio().value());
        return interval.equals(ratio + " to " + ratio) ? "" : " (" + interval + ")";
    }

    /** The best one that no decided comparison puts behind another, and of which some comparison is decided. */
    private String leader() {
        Predicate<String> isUnbeaten =
                name -> against(name).noneMatch(c -> c.verdict().kind() == Kind.WORSE);
        Predicate<String> isJudged = name -> against(name).anyMatch(VerdictWords::isDecided);
        return Stream.of(isUnbeaten.and(isJudged), isUnbeaten)
                .flatMap(wanted ->
                        counted.stream().map(Ranked::technology).filter(wanted).limit(1))
                .findFirst()
                .orElse(counted.getFirst().technology());
    }

    /** The leader and those that are alike with it and with each other. */
    private List<String> group(String leader) {
        List<String> group = new ArrayList<>(List.of(leader));
        for (Ranked ranked : counted) {
            String name = ranked.technology();
            if (!group.contains(name)
                    && group.stream()
                            .allMatch(member -> held(name, member)
                                    .filter(c -> c.verdict().kind() == Kind.EQUIVALENT)
                                    .isPresent())) {
                group.add(name);
            }
        }
        return group;
    }

    /** The comparisons of a technology with the others that count, from its side. */
    private Stream<Comparison> against(String technology) {
        return counted.stream().flatMap(other -> held(technology, other.technology()).stream());
    }

    private Optional<Comparison> held(String technology, String against) {
        return comparisons.stream()
                .flatMap(c -> Stream.of(c, c.reversed()))
                .filter(c -> c.technology().equals(technology) && c.against().equals(against))
                .findFirst();
    }

    private static List<String> names(List<Comparison> rivals, Predicate<Comparison> wanted) {
        return rivals.stream().filter(wanted).map(Comparison::technology).toList();
    }

    /** How people say that a figure is so many times another: a time is long, a cost is much. */
    private record Phrase(String best, String verb, String as) {
        static Phrase of(Metric metric) {
            if (metric.better() == Metric.Better.HIGHER) {
                return new Phrase("reaches most", "reaches", "as much");
            }
            return metric.subject() == Metric.Subject.CLIENT && metric.unit().equals("ms")
                    ? new Phrase("is fastest", "takes", "as long")
                    : new Phrase("needs least", "needs", "as much");
        }
    }
}
