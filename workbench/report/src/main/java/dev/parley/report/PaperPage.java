package dev.parley.report;

import dev.parley.analysis.Validity;
import dev.parley.report.Palette.Mark;
import dev.parley.report.RunPage.Flag;
import dev.parley.studies.Claim;
import dev.parley.studies.CsvText;
import dev.parley.studies.Judgement.Finding;
import dev.parley.studies.Judgement.Verdict;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * All that {@code paper.html} says, in the order in which it says it. The template {@code paper} writes it.
 *
 * @param answer sentences: how many conclusions came to what, and why some came to nothing
 * @param examples of each verdict
 * @param claims the paper's order; other ways to measure a claim stand below it
 * @param claimsLink to their CSV, which is in it
 * @param curves the paper's charts of what grows
 * @param criteria theirs and ours; without a row where the paper has none
 * @param tables the paper's figures beside ours
 * @param orders whether both have the technologies in one order; without a row where there is none
 * @param planned what the paper set; without a row where it gives nothing
 * @param scale what it took of the published plan
 * @param sittings without a row where none was written down
 */
record PaperPage(
        Frame frame,
        String title,
        String citation,
        String answer,
        List<Examples> examples,
        List<Flag> flags,
        List<ClaimRow> claims,
        String claimsLink,
        List<Drawing> curves,
        Table criteria,
        List<Drawing> tables,
        Table orders,
        Table planned,
        String scale,
        Table sittings,
        List<PartFacts> parts) {
    private static final int MAX_EXAMPLES = 3;

    /**
     * The first conclusions of one verdict.
     *
     * @param more how many others there are, in words; empty where these are all
     */
    record Examples(Verdict verdict, List<Claim> first, String more) {}

    /**
     * A claim as the page shows it.
     *
     * @param style {@code good}, {@code bad} or {@code hint}
     * @param comparisons without a row where there are none
     */
    record ClaimRow(Claim claim, String words, String style, String measured, Table comparisons) {}

    /** @param report link to the part's own report; empty where it does not stand beside the page */
    record PartFacts(String name, String report, List<Fact> facts) {}

    /** @param hasParts whether the parts' own reports stand beside the page */
    static PaperPage of(PaperResults results, boolean hasParts) {
        List<Chart> curves = PaperCharts.curves(results);
        List<Chart> tables = PaperCharts.tables(results);
        List<Chart> charts = Stream.concat(curves.stream(), tables.stream()).toList();
        // each conclusion counts once, however many ways it was measured
        List<PaperClaim> once =
                results.claims().stream().filter(claim -> !claim.isAnotherWay()).toList();
        List<Mark> marks =
                Palette.of(charts.stream().flatMap(PaperPage::names).distinct().toList());
        return new PaperPage(
                Frame.ofCharts(results.paper() + ", held against this machine", ChartData.json(marks, charts)),
                results.head().title(),
                results.head().citation(),
                answer(once, results.claims().size() - once.size()),
                Stream.of(Verdict.values())
                        .filter(verdict -> !those(once, verdict).isEmpty())
                        .map(verdict -> examples(verdict, those(once, verdict)))
                        .toList(),
                flags(results),
                ordered(results.claims()).stream().map(PaperPage::row).toList(),
                CsvText.link(PaperFiles.claims(results.claims())),
                IntStream.range(0, curves.size())
                        .mapToObj(i -> drawing(
                                curves.get(i),
                                String.join(", ", results.head().curves().get(i).panels()),
                                marks))
                        .toList(),
                criteria(results.criteria()),
                tables.stream().map(chart -> drawing(chart, "", marks)).toList(),
                new Table(
                        "Order of the technologies under the same condition",
                        List.of("metric", "Kendall's tau", "pairs"),
                        Orders.byMetric(results.figures())),
                planned(results),
                "Scale " + results.head().scale() + ": " + results.head().rule() + ".",
                new Table(
                        "Sittings",
                        List.of("begun", "took", "commit", "command"),
                        results.head().sittings().stream()
                                .map(s -> List.of(s.began().toString(), s.length(), s.commit(), s.command()))
                                .toList()),
                results.head().parts().stream()
                        .map(part -> part(part, results, hasParts))
                        .toList());
    }

    String html() {
        return Pages.text("paper", this);
    }

    private static Drawing drawing(Chart chart, String choice, List<Mark> marks) {
        Set<String> names = names(chart).collect(Collectors.toSet());
        return Drawing.of(
                chart,
                Words.sentence(choice),
                marks.stream().filter(mark -> names.contains(mark.technology())).toList());
    }

    private static Stream<String> names(Chart chart) {
        return chart.rows().stream().flatMap(row -> row.points().stream()).map(Chart.Point::technology);
    }

    private static String answer(List<PaperClaim> once, int ways) {
        if (once.isEmpty()) {
            return "None of its conclusions is written down.";
        }
        List<PaperClaim> open = those(once, Verdict.NOT_DECIDED);
        return "Of the paper's " + Words.count(once.size(), "conclusion") + ", "
                + several(those(once, Verdict.HOLDS).size(), "holds", "hold") + " on this machine, "
                + several(those(once, Verdict.DOES_NOT_HOLD).size(), "does not hold", "do not hold") + " and "
                + several(open.size(), "is not decided", "are not decided") + "."
                + (ways == 0
                        ? ""
                        : " Below, " + several(ways, "further line measures or reads", "further lines measure or read")
                                + " one of them in another way.")
                + why(open);
    }

    private static List<PaperClaim> those(List<PaperClaim> claims, Verdict wanted) {
        return claims.stream().filter(claim -> claim.verdict() == wanted).toList();
    }

    private static String several(int count, String one, String many) {
        return count + " " + (count == 1 ? one : many);
    }

    private static String why(List<PaperClaim> open) {
        List<String> why = new ArrayList<>();
        int unmeasured = 0;
        int wanting = 0;
        for (PaperClaim claim : open) {
            List<Finding> findings = claim.judgement().findings();
            unmeasured += findings.isEmpty() ? 1 : 0;
            wanting += findings.stream().anyMatch(finding -> !finding.none().isEmpty()) ? 1 : 0;
        }
        int close = open.size() - unmeasured - wanting;
        if (unmeasured > 0) {
            why.add(several(unmeasured, "is no matter of measurement", "are no matter of measurement"));
        }
        if (wanting > 0) {
            why.add(several(wanting, "lacks figures that count", "lack figures that count"));
        }
        if (close > 0) {
            why.add(several(close, "lies too close to its border", "lie too close to their border"));
        }
        return why.isEmpty() ? "" : " Of those that are not decided, " + Words.and(why) + ".";
    }

    private static Examples examples(Verdict verdict, List<PaperClaim> all) {
        int more = all.size() - MAX_EXAMPLES;
        return new Examples(
                verdict,
                all.stream().limit(MAX_EXAMPLES).map(PaperClaim::claim).toList(),
                more > 0 ? "And " + Words.number(more) + " more." : "");
    }

    private static List<Flag> flags(PaperResults results) {
        List<Flag> flags = new ArrayList<>();
        flags.add(new Flag("", "scale " + results.head().scale()));
        List<PaperPart.Run> runs = results.head().parts().stream()
                .flatMap(part -> part.run().stream())
                .toList();
        long restarts = runs.stream().mapToLong(PaperPart.Run::restarts).min().orElse(0);
        flags.add(new Flag(
                restarts < Validity.ENOUGH_RESTARTS ? "hint" : "",
                Words.count(restarts, "restart")
                        + (restarts < Validity.MIN_VERDICT_RESTARTS ? ": too few for any verdict" : "")));
        RunPage.flag(flags, "hint", results.head().parts().size() - runs.size(), "part", " not measured");
        RunPage.flag(
                flags,
                "bad",
                runs.stream().filter(run -> !run.undecided().isEmpty()).count(),
                "part",
                " decided nothing");
        PaperPart.Trials trials =
                runs.stream().map(PaperPart.Run::trials).reduce(PaperPart.Trials.NONE, PaperPart.Trials::plus);
        int planned = runs.stream().mapToInt(PaperPart.Run::planned).sum();
        flags.add(new Flag("", trials.ended() + " of " + Words.count(planned, "trial")));
        RunPage.flag(flags, "bad", trials.voids(), "void trial", "");
        RunPage.flag(flags, "bad", trials.failed(), "trial", " failed or interrupted");
        RunPage.flag(flags, "hint", trials.cold(), "cold trial", "");
        RunPage.flag(flags, "hint", trials.unknown(), "trial", " of unknown warmth");
        return List.copyOf(flags);
    }

    /** Each claim, and right below it the other ways to measure it. */
    private static Set<PaperClaim> ordered(List<PaperClaim> claims) {
        Set<PaperClaim> ordered = new LinkedHashSet<>();
        claims.stream().filter(claim -> !claim.isAnotherWay()).forEach(claim -> add(claim, claims, ordered));
        // two that name each other hang below no third
        ordered.addAll(claims);
        return ordered;
    }

    private static void add(PaperClaim claim, List<PaperClaim> claims, Set<PaperClaim> ordered) {
        if (ordered.add(claim)) {
            claims.stream()
                    .filter(other -> other.claim().beside().equals(claim.claim().id()))
                    .forEach(other -> add(other, claims, ordered));
        }
    }

    private static ClaimRow row(PaperClaim claim) {
        return new ClaimRow(
                claim.claim(),
                claim.judgement().words(),
                style(claim.verdict()),
                claim.measured(),
                new Table(
                        "Comparisons of " + claim.claim().id(),
                        List.of("outcome", "comparison", "left", "right"),
                        claim.judgement().findings().stream()
                                .map(f -> List.of(
                                        f.words() + ": " + f.why(),
                                        f.what(),
                                        Figures.brief(f.left()),
                                        Figures.brief(f.right())))
                                .toList()));
    }

    static String style(Verdict verdict) {
        return switch (verdict) {
            case HOLDS -> "good";
            case DOES_NOT_HOLD -> "bad";
            case NOT_DECIDED -> "hint";
        };
    }

    /** A column for each technology; theirs in one line, and ours in the next. */
    private static Table criteria(List<PaperCriterion> criteria) {
        List<String> technologies =
                criteria.stream().map(PaperCriterion::technology).distinct().toList();
        List<List<String>> rows = new ArrayList<>();
        criteria.stream()
                .collect(Collectors.groupingBy(
                        c -> List.of(c.name(), c.shows()), LinkedHashMap::new, Collectors.toList()))
                .forEach((what, line) -> {
                    if (line.getFirst().fact().isEmpty()) {
                        rows.add(criterion(what, "theirs", technologies, line, PaperPage::theirs));
                    }
                    rows.add(criterion(what, "ours", technologies, line, PaperPage::ours));
                });
        return new Table(
                "The criteria of the paper",
                Stream.concat(Stream.of("criterion", "what", "whose"), technologies.stream())
                        .toList(),
                rows);
    }

    private static List<String> criterion(
            List<String> what,
            String whose,
            List<String> technologies,
            List<PaperCriterion> line,
            Function<PaperCriterion, String> field) {
        return Stream.of(
                        what.stream(),
                        Stream.of(whose),
                        technologies.stream()
                                .map(technology -> line.stream()
                                        .filter(one -> one.technology().equals(technology))
                                        .findFirst()
                                        .map(field)
                                        .orElse("–")))
                .flatMap(fields -> fields)
                .toList();
    }

    private static String theirs(PaperCriterion criterion) {
        return Double.isNaN(criterion.theirs()) ? "–" : Figures.exact(criterion.theirs()) + " " + criterion.unit();
    }

    private static String ours(PaperCriterion criterion) {
        if (!criterion.fact().isEmpty()) {
            return criterion.fact();
        }
        String remark = criterion.ours().remark();
        return (criterion.ours().isMeasured() ? Figures.brief(criterion.ours().value()) + " " + criterion.unit() : "–")
                + (remark.isEmpty() ? "" : " (" + remark + ")");
    }

    private static Table planned(PaperResults results) {
        return new Table(
                "What the paper set",
                List.of("place", "technology", "message", "load", "what", "value", "note"),
                results.figures().stream()
                        .map(PaperFigure::theirs)
                        .filter(f -> f.isPlanned())
                        .map(f -> List.of(
                                f.place(),
                                f.technology(),
                                f.message(),
                                f.load(),
                                f.metric().replace("planned_", ""),
                                f.written() + " " + f.unit(),
                                f.note()))
                        .toList());
    }

    private static PartFacts part(PaperPart part, PaperResults results, boolean hasParts) {
        List<Fact> facts = new ArrayList<>();
        facts.add(new Fact("In the paper", part.place()));
        facts.add(new Fact("What", part.about()));
        if (!part.technologies().isEmpty()) {
            facts.add(new Fact("Technologies", String.join(", ", part.technologies())));
            facts.add(new Fact("Loads, theirs → ours", String.join("; ", part.loads())));
        }
        part.run().ifPresent(run -> {
            facts.add(new Fact("Command", run.command()));
            facts.add(new Fact("Started", run.started().toString()));
            facts.add(new Fact("Commit", run.commit()));
            facts.add(new Fact("Scale", results.head().scale() + ", restarts " + run.restarts()));
            facts.add(new Fact("Warm", run.warmth()));
            facts.add(new Fact("Order", run.order()));
            if (!run.undecided().isEmpty()) {
                facts.add(new Fact("Decides nothing", run.undecided()));
            }
            facts.add(new Fact("JDK", run.jdk()));
            run.machine().forEach((name, value) -> facts.add(new Fact(name, value)));
            facts.add(new Fact(
                    "Trials",
                    run.trials().ended() + " of " + run.planned() + " ended: "
                            + run.trials().voids() + " void, " + run.trials().cold() + " cold, "
                            + run.trials().unknown() + " of unknown warmth, "
                            + run.trials().failed() + " failed or interrupted"));
        });
        if (!part.why().isEmpty()) {
            facts.add(new Fact(part.run().isPresent() ? "Not as published" : "Not measured", part.why()));
        }
        return new PartFacts(
                part.name(),
                hasParts && part.run().isPresent() ? part.name() + "/" + Report.HTML : "",
                List.copyOf(facts));
    }
}
