package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.report.Palette.Mark;
import dev.parley.report.PaperPage.ClaimRow;
import dev.parley.report.PaperPage.Examples;
import dev.parley.report.RunPage.Flag;
import dev.parley.studies.Claim;
import dev.parley.studies.Judgement;
import dev.parley.studies.Judgement.Finding;
import dev.parley.studies.Judgement.Verdict;
import dev.parley.studies.PublishedFigure;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** What the page holds, whatever its template makes of it. */
class PaperPageTest {
    private static final Ours OURS = new Ours(5, 4, 6, "5", "valid");

    private static PaperClaim claim(String id, String beside, Verdict verdict, Finding... findings) {
        return new PaperClaim(
                new Claim(id, "1", id + ".", "", "", beside), new Judgement(verdict, false, List.of(findings)));
    }

    private static Finding finding(Verdict verdict, double ratio, String none) {
        return new Finding(verdict, false, "a < b", ratio, 1, ratio, ratio, ratio, 1, none);
    }

    private static PaperFigure figure(String technology, String message, String load, Ours ours, String ourLoad) {
        return new PaperFigure(
                new PublishedFigure(
                        "Table 1", "", technology, "line:2", message, load, "latency_mean", "", "7.5", "ms", ""),
                ours.isMeasured() ? "one" : "",
                ourLoad,
                ours);
    }

    private static PaperPage page(List<PaperClaim> claims, List<PaperFigure> figures, PaperPart... parts) {
        return PaperPage.of(
                new PaperResults(
                        new PaperResults.Head(
                                "own", "A paper", "Somebody", "quick", "little", List.of(), List.of(parts), List.of()),
                        claims,
                        figures,
                        List.of(),
                        List.of()),
                false);
    }

    @Test
    void theFirstScreenCountsEachConclusionOnceAndSaysWhySomeAreOpen() {
        Finding missing = finding(Verdict.NOT_DECIDED, Double.NaN, "not measured");
        PaperPage page = page(
                List.of(
                        claim("a", "", Verdict.HOLDS, finding(Verdict.HOLDS, 0.5, "")),
                        claim("b", "", Verdict.DOES_NOT_HOLD, finding(Verdict.DOES_NOT_HOLD, 2, "")),
                        claim("words", "", Verdict.NOT_DECIDED),
                        claim("wanting", "", Verdict.NOT_DECIDED, finding(Verdict.HOLDS, 0.5, ""), missing),
                        claim("close", "", Verdict.NOT_DECIDED, finding(Verdict.NOT_DECIDED, 1, "")),
                        claim("b-too", "b", Verdict.HOLDS, finding(Verdict.HOLDS, 0.5, ""))),
                List.of());
        assertThat(page.answer())
                .isEqualTo("Of the paper's 5 conclusions, 1 holds on this machine, 1 does not hold and 3 are not"
                        + " decided. Below, 1 further line measures or reads one of them in another way. Of those that"
                        + " are not decided, 1 is no matter of measurement, 1 lacks figures that count and 1 lies too"
                        + " close to its border.");
        assertThat(page.examples())
                .extracting(Examples::verdict)
                .containsExactly(Verdict.HOLDS, Verdict.DOES_NOT_HOLD, Verdict.NOT_DECIDED);
        assertThat(page.examples().getFirst().first())
                .as("not the other way")
                .extracting(Claim::id)
                .containsExactly("a");
    }

    @Test
    void ofManyConclusionsTheFirstStandOnTheFirstScreen() {
        List<PaperClaim> five = List.of("a", "b", "c", "d", "e").stream()
                .map(id -> claim(id, "", Verdict.HOLDS, finding(Verdict.HOLDS, 0.5, "")))
                .toList();
        assertThat(page(five, List.of()).examples()).singleElement().satisfies(examples -> {
            assertThat(examples.first()).extracting(Claim::id).containsExactly("a", "b", "c");
            assertThat(examples.more()).isEqualTo("And two more.");
        });
    }

    @Test
    void anotherWayToMeasureAClaimStandsBelowIt() {
        PaperPage page = page(
                List.of(
                        claim("a", "", Verdict.HOLDS),
                        claim("b", "", Verdict.HOLDS),
                        claim("a-too", "a", Verdict.HOLDS),
                        claim("a-three", "a-too", Verdict.HOLDS),
                        claim("x", "y", Verdict.HOLDS),
                        claim("y", "x", Verdict.HOLDS)),
                List.of());
        assertThat(page.claims())
                .extracting((ClaimRow row) -> row.claim().id())
                .containsExactly("a", "a-too", "a-three", "b", "x", "y");
    }

    @Test
    void ofSeveralComparisonsItIsToldHowTheyWentAndWhyTheWholeIsOpen() {
        assertThat(claim(
                                "a",
                                "",
                                Verdict.NOT_DECIDED,
                                finding(Verdict.HOLDS, 0.5, ""),
                                finding(Verdict.NOT_DECIDED, Double.NaN, "not measured: kafka"),
                                finding(Verdict.NOT_DECIDED, 1, ""))
                        .measured())
                .isEqualTo("1 of 3 comparisons hold, 0 do not, 2 are open; ratios 0.500 to 1.00; open: not measured:"
                        + " kafka");
        assertThat(claim(
                                "a",
                                "",
                                Verdict.DOES_NOT_HOLD,
                                finding(Verdict.HOLDS, 0.5, ""),
                                finding(Verdict.DOES_NOT_HOLD, 2, ""))
                        .measured())
                .isEqualTo("1 of 2 comparisons hold, 1 do not; ratios 0.500 to 2.00");
    }

    @Test
    void conditionsThatAllShareStandOnceAndOthersNameTheirRow() {
        PaperPage page = page(
                List.of(),
                List.of(
                        figure("rest", "text:10", "few", OURS, "closed:1"),
                        figure("grpc", "text:10", "few", OURS, "closed:1"),
                        figure("kafka", "text:10", "few", Ours.missing("not measured: kafka"), ""),
                        figure("rest", "text:1000", "few", OURS, "closed:1")));
        assertThat(page.tables().getFirst()).satisfies(table -> {
            assertThat(table.heading()).isEqualTo("Table 1: latency mean, one");
            assertThat(table.note()).startsWith("line:2, few");
            assertThat(table.figures().rows())
                    .extracting(row -> row.subList(0, 4))
                    .containsExactly(
                            List.of("text:10", "rest", "7.5", "5.00"),
                            List.of("text:10", "grpc", "7.5", "5.00"),
                            List.of("text:10", "kafka", "7.5", "–"),
                            List.of("text:1000", "rest", "7.5", "5.00"));
        });
    }

    @Test
    void severalLoadsOfOursForOneOfThePapersHaveARowEach() {
        PaperPage page = page(
                List.of(),
                List.of(
                        figure("rest", "text:10", "both", OURS, "closed:1"),
                        figure("rest", "text:10", "both", OURS, "closed:16")));
        assertThat(page.tables().getFirst().figures().rows())
                .extracting(List::getFirst)
                .containsExactly("closed:1", "closed:16");
    }

    /** A variant's shape and an unknown name's colour hang on the names beside it. */
    @Test
    void marksOfALegendAreThoseThatTheScriptDraws() {
        PaperPage page = page(
                List.of(),
                List.of(
                        figure("grpc-tuned", "text:10", "few", OURS, "closed:1"),
                        figure("grpc-spring", "text:1000", "few", OURS, "closed:1"),
                        figure("mine", "text:1000", "few", OURS, "closed:1")));
        JsonNode drawn = JsonMapper.shared().readTree(page.frame().data()).path("technologies");
        assertThat(page.tables()).allSatisfy(table -> {
            assertThat(table.legend()).extracting(Mark::technology).isNotEmpty();
            for (Mark mark : table.legend()) {
                assertThat(drawn.valueStream()
                                .filter(one -> one.path("name").asString().equals(mark.technology()))
                                .map(one -> one.path("colour").asString()
                                        + one.path("path").asString()))
                        .containsExactly(mark.colour() + mark.path());
            }
        });
    }

    @Test
    void flagsCountWhatIsWanting() {
        PaperPart whole = part(Optional.of(new PaperPart.Run(
                "./parley reproduce own",
                Instant.parse("2026-01-02T08:00:00Z"),
                "abc",
                "25",
                List.of(),
                Map.of(),
                2,
                "warm",
                "rest, grpc",
                "measured by other rules",
                20,
                new PaperPart.Trials(18, 1, 3, 2, 1))));
        assertThat(page(List.of(), List.of(), whole, part(Optional.empty())).flags())
                .containsExactly(
                        new Flag("", "scale quick"),
                        new Flag("hint", "2 restarts: too few for any verdict"),
                        new Flag("hint", "1 part not measured"),
                        new Flag("bad", "1 part decided nothing"),
                        new Flag("", "18 of 20 trials"),
                        new Flag("bad", "1 void trial"),
                        new Flag("bad", "1 trial failed or interrupted"),
                        new Flag("hint", "3 cold trials"),
                        new Flag("hint", "2 trials of unknown warmth"));
    }

    private static PaperPart part(Optional<PaperPart.Run> run) {
        return new PaperPart("one", "section 1", "a test", List.of("rest"), List.of("closed:1"), run, "");
    }
}
