package dev.parley.studies;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.BadInput;
import dev.parley.model.Load;
import dev.parley.model.Metric;
import dev.parley.model.Study;
import dev.parley.model.Topology;
import dev.parley.studies.Paper.Part;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.ValueSource;

class PaperTest {
    private static final List<String> NAMES = Paper.NAMES;

    private static final Map<Part, Study> PUBLISHED = new HashMap<>();

    /**
     * As if everything that the papers measured were here; each is read once, as the claims ask for them thousands of
     * times.
     */
    private static Study published(Part part) {
        return PUBLISHED.computeIfAbsent(
                part, asked -> asked.study(asked.technologies()).orElseThrow());
    }

    @ParameterizedTest
    @FieldSource("NAMES")
    void everyPartIsAStudyAtEveryScale(String name) {
        for (Part part : Paper.named(name).parts()) {
            for (Scale scale : Scale.values()) {
                Scale.Scaled scaled = part.study(part.technologies(), scale).orElseThrow();
                assertThat(scaled.loads()).containsOnlyKeys(published(part).loads());
                assertThat(scaled.study().loads()).containsAll(scaled.loads().values());
                assertThat(scaled.study().messages()).isEqualTo(published(part).messages());
            }
            assertThat(part.study(part.technologies(), Scale.PAPER)
                            .orElseThrow()
                            .study()
                            .loads())
                    .isEqualTo(published(part).loads());
        }
    }

    /** Behind a front of another technology, what clients send and get tells nothing of the technology under test. */
    @Test
    void aRestFrontIsWeerasinghesAlone() {
        assertThat(NAMES.stream()
                        .filter(name -> Paper.named(name).parts().stream()
                                .flatMap(part -> published(part).topologies().stream())
                                .anyMatch(Topology::restFront)))
                .containsExactly("weerasinghe");
    }

    /**
     * Section IV: services for authentication, for flat and for nested data; all of the data or, read otherwise, a page
     * of it.
     */
    @Test
    void niswarsClientsAskOneOfThreeServicesForAllThatThereIsOrForAPage() {
        assertThat(Paper.named("niswar").parts()).hasSize(4).allSatisfy(part -> {
            Study study = published(part);
            String first = part.name().replace("-page", "");
            List<String> technologies = part.name().equals("flat")
                    ? List.of("rest", "rest-jetty", "rest-h2", "graphql", "grpc")
                    : List.of("rest", "graphql", "grpc");
            assertThat(study.technologies()).isEqualTo(technologies);
            assertThat(study.messages())
                    .extracting(Object::toString)
                    .containsExactly(first + (part.name().endsWith("-page") ? ":100" : ":2221"));
            assertThat(study.topologies()).singleElement().satisfies(topology -> {
                assertThat(topology.entry().name()).isEqualTo(first);
                assertThat(topology.nodes())
                        .extracting(node -> node.name() + node.calls())
                        .containsExactlyInAnyOrder(
                                "flat[authentication]", "nested[authentication]", "authentication[]");
            });
        });
    }

    /** A misspelt condition would pass for something that was not measured. */
    @ParameterizedTest
    @FieldSource("NAMES")
    void everyClaimAsksForSomethingThatIsPlanned(String name) {
        Paper paper = Paper.named(name);
        for (Claim claim : paper.claims()) {
            List<FigureQuery> asked = new ArrayList<>();
            claim.judge(cell -> paper.measured(cell, inner -> {
                asked.add(inner);
                return Measured.number(1);
            }));
            assertThat(asked).allSatisfy(cell -> {
                assertThat(Arrays.stream(Metric.values()).map(Metric::key))
                        .as(claim.id())
                        .contains(cell.metric());
                assertThat(matches(paper, cell)).as(claim.id() + ": " + cell).isEqualTo(1);
            });
        }
    }

    /** A message may be left out where only one goes with the load. */
    private static long matches(Paper paper, FigureQuery cell) {
        long found = 0;
        for (Part part : paper.parts()) {
            Study study = published(part);
            long loads = paper.loads(cell.condition("load"), study).stream()
                    .filter(load -> study.messages().stream()
                                    .filter(m -> cell.condition("message").isEmpty()
                                            || m.toString().equals(cell.condition("message")))
                                    .filter(m -> study.has(m, load))
                                    .count()
                            == 1)
                    .count();
            boolean isHere =
                    (cell.condition("part").isEmpty() || cell.condition("part").equals(part.name()))
                            && study.technologies().contains(cell.condition("technology"))
                            && one(cell.condition("topology"), study.topologies());
            found += isHere ? loads : 0;
        }
        return found;
    }

    private static boolean one(String wanted, List<?> all) {
        return wanted.isEmpty()
                ? all.size() == 1
                : all.stream().anyMatch(a -> a.toString().equals(wanted));
    }

    @ParameterizedTest
    @FieldSource("NAMES")
    void everyMeasuredFigureBelongsToAPart(String name) {
        Paper paper = Paper.named(name);
        for (PublishedFigure figure : paper.figures()) {
            if (figure.isPlanned() || figure.load().isEmpty()) {
                continue;
            }
            assertThat(paper.parts().stream()
                            .filter(part ->
                                    figure.part().isEmpty() || figure.part().equals(part.name()))
                            .mapToInt(part ->
                                    paper.loads(figure.load(), published(part)).size())
                            .sum())
                    .as(figure.toString())
                    .isPositive();
        }
    }

    @ParameterizedTest
    @EnumSource(Scale.class)
    void whatIsComparedStaysAsPublished(Scale scale) {
        for (String name : NAMES) {
            for (Part part : Paper.named(name).parts()) {
                part.study(part.technologies(), scale).orElseThrow().loads().forEach((published, scaled) -> {
                    assertThat(scaled.getClass()).isEqualTo(published.getClass());
                    assertThat(scaled.amount()).isEqualTo(published.amount());
                });
            }
        }
    }

    /** Zhang's claims held against zhang's own tables, and against the same with two technologies' rows exchanged. */
    @Test
    void aPapersOwnFiguresHoldItsClaimsAndExchangedOnesTurnThem() {
        Paper zhang = Paper.named("zhang");
        for (Claim claim : zhang.claims()) {
            if (!claim.id().matches("(time|time-559|tps|tps-1269)-(grpc|openfeign)")) {
                continue;
            }
            assertThat(claim.judge(cell -> own(zhang, cell, Map.of())).verdict())
                    .as(claim.id())
                    .isEqualTo(Judgement.Verdict.HOLDS);
            String rival = claim.id().substring(claim.id().lastIndexOf('-') + 1);
            assertThat(claim.judge(cell -> own(zhang, cell, Map.of("rpcx", rival, rival, "rpcx")))
                            .verdict())
                    .as(claim.id() + ", exchanged")
                    .isEqualTo(Judgement.Verdict.DOES_NOT_HOLD);
            String other = rival.equals("grpc") ? "openfeign" : "grpc";
            assertThat(claim.judge(cell -> own(zhang, cell, Map.of(other, "websocket")))
                            .verdict())
                    .as(claim.id() + ", the third technology lost")
                    .isEqualTo(Judgement.Verdict.HOLDS);
        }
    }

    private static Measured own(Paper paper, FigureQuery cell, Map<String, String> exchanged) {
        String technology = cell.condition("technology");
        String wanted = exchanged.getOrDefault(technology, technology);
        return paper.figures().stream()
                .filter(f -> f.metric().equals(cell.metric())
                        && f.technology().equals(wanted)
                        && f.load().equals(cell.condition("load")))
                .findFirst()
                .map(f -> Measured.ofRestarts(f.value(), f.value(), f.value()))
                .orElse(Measured.missing("not published: " + cell));
    }

    /** A misspelt load or metric would draw an empty chart. */
    @ParameterizedTest
    @FieldSource("NAMES")
    void everyCurveHasSomethingToDraw(String name) {
        Paper paper = Paper.named(name);
        for (Curve curve : paper.curves()) {
            assertThat(paper.parts().stream()
                            .mapToLong(part -> published(part).loads().stream()
                                    .filter(load -> curve.load().isEmpty()
                                            || paper.loads(curve.load(), published(part))
                                                    .contains(load))
                                    .filter(load -> curve.across() == Curve.Across.AMOUNT
                                            || curve.across() == Curve.Across.STEP && load instanceof Load.Staircase
                                            || load instanceof Load.Rounds)
                                    .count())
                            .sum())
                    .as(curve.place())
                    .isPositive();
            assertThat(paper.metrics().containsKey(curve.metric())
                            || Arrays.stream(Metric.values())
                                    .anyMatch(m -> m.key().equals(curve.metric())))
                    .as(curve.metric())
                    .isTrue();
        }
    }

    @Test
    void theEightCriteriaStandWithThePapersOwnFigures() {
        Paper paper = Paper.named("kazanavicius");
        assertThat(paper.criteria().stream().map(Criterion::name).distinct()).hasSize(8);
        for (Criterion criterion : paper.criteria()) {
            if (criterion.fact().isEmpty()) {
                paper.measured(criterion, "rest", cell -> {
                    assertThat(matches(paper, cell)).as(criterion + ": " + cell).isEqualTo(1);
                    return Measured.number(1);
                });
            }
        }
        Map<String, Double> theirs = new java.util.HashMap<>();
        paper.criteria().stream()
                .filter(c -> c.fact().isEmpty())
                .forEach(c -> theirs.merge(c.name(), paper.published(c, "rest").value(), (a, b) -> a));
        assertThat(theirs)
                .containsEntry("Performance", 7.527)
                .containsEntry("Message size", 172.0)
                .containsEntry("Memory size", 69.0)
                .containsEntry("Storage size", 4.71)
                .containsEntry("Boot time", 3100.0);
    }

    @Test
    void aTestBedIsNeededOrOnlyWanted() {
        assertThat(Paper.named("weerasinghe").parts().getFirst().bounds()).isEqualTo(Paper.Bounds.WANTED);
        assertThat(Paper.named("iwanowski").parts())
                .extracting(Part::bounds)
                .containsExactly(Paper.Bounds.WANTED, Paper.Bounds.NEEDED);
        Part rates = Paper.named("weerasinghe").parts().getFirst();
        Scale.Scaled quick = rates.study(rates.technologies(), Scale.QUICK).orElseThrow();
        assertThat(quick.study().limits().hasShares()).isTrue();
        assertThat(quick.withoutLimits().study().limits().isNone()).isTrue();
        assertThat(quick.withoutLimits().study().loads())
                .isEqualTo(quick.study().loads());
    }

    @Test
    void aScaleSaysWhatItCannotDecide() {
        Part rates = Paper.named("niswar").parts().getFirst();
        Scale.Scaled quick = rates.study(rates.technologies(), Scale.QUICK).orElseThrow();
        Load once = Load.parse("open:1:even");
        assertThat(quick.loads().get(once)).isEqualTo(once);
        assertThat(Scale.undecided(Metric.LATENCY_MEAN, once, once, quick.study()))
                .contains("1.00 requests in a window (expected: 16 or more)");
        Part line = Paper.named("kazanavicius").parts().getFirst();
        Scale.Scaled steps = line.study(line.technologies(), Scale.QUICK).orElseThrow();
        Load staircase = steps.loads().get(Load.parse("staircase:10-200:+10:30s"));
        assertThat(Scale.undecided(Metric.THROUGHPUT, staircase, staircase, steps.study())
                        .orElseThrow())
                .startsWith("steps of 60 ms (expected: 3000 ms");
        Scale.Scaled standard = line.study(line.technologies(), Scale.STANDARD).orElseThrow();
        standard.study()
                .loads()
                .forEach(load -> assertThat(Scale.undecided(Metric.THROUGHPUT, load, load, standard.study()))
                        .isEmpty());
    }

    /** Where a scale has half of the published steps, the first that gives out is not the paper's first. */
    @Test
    void theStandardScaleDoublesTheClientsOfAStaircase() {
        Part line = Paper.named("kazanavicius").parts().getFirst();
        Load published = Load.parse("staircase:10-200:+10:30s");
        for (Scale scale : Scale.values()) {
            Scale.Scaled scaled = line.study(line.technologies(), scale).orElseThrow();
            Load ours = scaled.loads().getOrDefault(published, published);
            assertThat(((Load.Staircase) ours).steps().size()).isEqualTo(scale == Scale.STANDARD ? 6 : 20);
            if (scale == Scale.STANDARD) {
                assertThat(ours).hasToString("staircase:10-200:x2:3s");
                assertThat(Scale.undecided(Metric.CLIENTS_AT_LIMIT, published, ours, scaled.study()))
                        .contains("steps other than the paper's, between which clients may give out");
                assertThat(Scale.undecided(Metric.CLIENTS_AT_BEST, published, ours, scaled.study()))
                        .isEmpty();
            }
        }
    }

    /** Five seconds hold no request at one in three seconds. */
    @Test
    void aWindowOfTheStandardScaleIsLongEnoughForFiveRequests() {
        Part flat = Paper.named("niswar").parts().getFirst();
        Study standard =
                flat.study(flat.technologies(), Scale.STANDARD).orElseThrow().study();
        assertThat(standard.effort().window(Load.parse("open:0.333:even"))).isEqualTo(Duration.ofSeconds(16));
        assertThat(standard.effort().window(Load.parse("open:1.667:even"))).isEqualTo(Duration.ofSeconds(5));
        assertThat(standard.effort().window(new Load.Closed(1))).isEqualTo(Duration.ofSeconds(5));
        Part calls = Paper.named("weerasinghe").parts().getFirst();
        assertThat(calls.study(calls.technologies(), Scale.STANDARD)
                        .orElseThrow()
                        .study()
                        .effort()
                        .window(Load.parse("open:10:even")))
                .as("250 requests, as its file asks for, since halves of fewer tell nothing of their level")
                .isEqualTo(Duration.ofSeconds(25));
        assertThat(StudyText.read(StudyText.of(standard), flat.technologies())).isEqualTo(standard);
    }

    /** Of 500 requests at once for all profiles each takes minutes on two cores, ten times over an hour for a restart. */
    @Test
    void theStandardScaleHasOneBurstOrTwoHundredRequests() {
        Part flat = Paper.named("niswar").parts().getFirst();
        Map<Load, Load> loads =
                flat.study(flat.technologies(), Scale.STANDARD).orElseThrow().loads();
        assertThat(loads.get(Load.parse("burst:500:10"))).isEqualTo(Load.parse("burst:500:1"));
        assertThat(loads.get(Load.parse("burst:100:10"))).isEqualTo(Load.parse("burst:100:2"));
    }

    @Test
    void newUsersComeForASecondAtTheLeast() {
        Part stand = Paper.named("iwanowski").parts().getFirst();
        Map<Load, Load> loads =
                stand.study(stand.technologies(), Scale.STANDARD).orElseThrow().loads();
        assertThat(loads.get(Load.parse("users:300:60s:10"))).isEqualTo(Load.parse("users:300:1s:10"));
        assertThat(loads.get(Load.parse("users:150:60s:5"))).isEqualTo(Load.parse("users:150:1s:5"));
        assertThat(loads.get(Load.parse("users:30:60s:5"))).isEqualTo(Load.parse("users:30:5s:5"));
    }

    /** A crowd that comes for a quarter of the time is a quarter of the crowd. */
    @Test
    void whoFailsIsDecidedByUsersWhoComeForAsLongAsPublished() {
        Part stand = Paper.named("iwanowski").parts().getFirst();
        Scale.Scaled standard =
                stand.study(stand.technologies(), Scale.STANDARD).orElseThrow();
        Load published = Load.parse("users:30:60s:10");
        Load shorter = standard.loads().getOrDefault(published, published);
        for (Metric metric : List.of(Metric.SUCCESS_SHARE, Metric.USERS_AT_FIRST_FAILURE)) {
            assertThat(Scale.undecided(metric, published, published, standard.study()))
                    .isEmpty();
            assertThat(Scale.undecided(metric, published, shorter, standard.study()))
                    .contains("users come for 2500 ms, in the paper for 60000 ms, after which others fail");
        }
        assertThat(Scale.undecided(Metric.THROUGHPUT, published, shorter, standard.study()))
                .isEmpty();
    }

    /**
     * Five hundred requests at once for all profiles take the slowest technology over a minute here: it is measured and
     * not cut.
     */
    @Test
    void niswarsCallsHaveAsMuchTimeAsTheirSuccess() {
        assertThat(Paper.named("niswar").parts()).hasSize(4).allSatisfy(part -> {
            assertThat(published(part).callLimit()).isEqualTo(java.time.Duration.ofMinutes(3));
            assertThat(published(part).limit()).isEqualTo(java.time.Duration.ofMinutes(3));
        });
        assertThat(published(Paper.named("zhang").parts().getFirst()).callLimit())
                .as("as always")
                .isEqualTo(java.time.Duration.ofMinutes(1));
    }

    /** Source: iwanowski, table 3: 16 cores and 32 GB against 6 cores and 16 GB. */
    @Test
    void theTwoStandsDifferAsThePapersDo() {
        List<dev.parley.model.Limits.Share> stands = Paper.named("iwanowski").parts().stream()
                .map(part -> published(part).limits().each())
                .toList();
        assertThat(stands.get(0).cores().orElseThrow() / stands.get(1).cores().orElseThrow())
                .isCloseTo(16 / 6.0, org.assertj.core.api.Assertions.within(0.01));
        assertThat((double) stands.get(0).memoryBytes().orElseThrow()
                        / stands.get(1).memoryBytes().orElseThrow())
                .isEqualTo(2);
        assertThat(Paper.named("iwanowski").parts().stream().map(PaperTest::published))
                .allMatch(Study::carriesOneMessage, "memory is that of one message");
    }

    @Test
    void usersWhoArriveFasterThanTheyAreServedArriveForAShorterTime() {
        Part part = Paper.named("iwanowski").parts().getFirst();
        Scale.Scaled quick = part.study(part.technologies(), Scale.QUICK).orElseThrow();
        assertThat(quick.loads().get(Load.parse("users:300:60s:10"))).isEqualTo(Load.parse("users:300:50ms:10"));
        assertThat(quick.loads().get(Load.parse("users:30:60s:5"))).isEqualTo(Load.parse("users:30:1s:5"));
    }

    @Test
    void roundsAreCutOnlyWhereTheyTakeTime() {
        Part part = Paper.named("zhang").parts().getFirst();
        Scale.Scaled quick = part.study(part.technologies(), Scale.QUICK).orElseThrow();
        assertThat(quick.loads().get(Load.parse("rounds:10x10:10:600s:shared")))
                .isEqualTo(Load.parse("rounds:10x10:10:600s:shared"));
        assertThat(quick.loads().get(Load.parse("rounds:990x500:10:600s:shared")))
                .isEqualTo(Load.parse("rounds:990x500:2:600s:shared"));
    }

    @Test
    void whatIsNotHereIsLeftOutAndTold() {
        Part part = Paper.named("kazanavicius").parts().getFirst();
        List<String> here = List.of("rest", "grpc", "graphql", "rpcx");
        assertThat(part.missing(here)).containsExactly("rabbitmq", "kafka-tuned", "kafka");
        assertThat(part.study(here).orElseThrow().technologies()).containsExactly("rest", "grpc", "graphql");
        assertThat(part.study(List.of("rpcx"))).isEqualTo(Optional.empty());
    }

    @Test
    void aMetricOfThePaperIsAnExpressionOverOurs() {
        Map<String, Double> runtimes = Map.of("rpcx", 20.0, "grpc", 80.0);
        Measured change = Paper.named("zhang")
                .measured(
                        new FigureQuery(
                                "grid_runtime_change", Map.of("technology", "rpcx/grpc", "load", "grid:10x100")),
                        cell -> {
                            assertThat(cell.metric()).isEqualTo("step_time");
                            assertThat(cell.condition("load")).isEqualTo("grid:10x100");
                            return Measured.number(runtimes.get(cell.condition("technology")));
                        });
        assertThat(change.value()).isEqualTo(75);
    }

    @ParameterizedTest
    @ValueSource(strings = {"short-messages", "kept-connections"})
    void theGuidesExamplesAreWhole(String example) {
        Paper paper = Paper.read(Path.of("../../docs/examples/" + example));
        assertThat(paper.claims()).hasSize(2);
        Study study = published(paper.parts().getFirst());
        assertThat(paper.figures())
                .isNotEmpty()
                .filteredOn(figure -> !figure.isPlanned())
                .allSatisfy(
                        figure -> assertThat(paper.loads(figure.load(), study)).hasSize(1));
    }

    @Test
    void aStudyOfOnesOwnIsAFolder(@TempDir Path folder) throws Exception {
        Files.writeString(
                folder.resolve("paper.yaml"),
                "paper: mine\ntitle: T\nauthors: A\nyear: 2026\npublished: here\n"
                        + "parts:\n  - part: one\n    place: all\n    about: a test\n");
        Files.writeString(folder.resolve("one.yaml"), "technologies: rest\nmessages: text:10\nloads: closed:1\n");
        Files.writeString(
                folder.resolve("figures.csv"), "place,technology,metric,value,unit\nTable 1,rest,latency_mean,7,ms\n");
        Files.writeString(folder.resolve("claims.csv"), "id,place,sentence,expression\nc,1,It is.,latency_mean < 8\n");
        assertThat(Paper.read(folder).citation()).isEqualTo("A (2026): T. here.");
        Files.writeString(
                folder.resolve("figures.csv"),
                "place,technology,metric,value,unit\n"
                        + "T,rest,latency_mean,7,s\nT,rest,wire_out,7,kB\nT,rest,mine,7,furlongs\n");
        assertThat(Paper.read(folder).figures())
                .as("from ms to s, from B to kB, and a metric of the paper's own as it is")
                .extracting(PublishedFigure::factor)
                .containsExactly(0.001, 0.001, 1.0);
        Files.writeString(
                folder.resolve("figures.csv"), "place,technology,metric,value,unit\nT,rest,latency_mean,7,kB\n");
        assertThatThrownBy(() -> Paper.read(folder))
                .as("a figure in a unit that ours has no way to would be off by whatever lies between them")
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("figures.csv:2: unit: kB (expected: ms, ");
        Files.writeString(
                folder.resolve("figures.csv"), "place,technology,metric,value,unit\nTable 1,rest,latency_mean,7,ms\n");
        Files.writeString(folder.resolve("claims.csv"), "id,place,sentence,expression\nc,1,It is.,latency_mean < \n");
        assertThatThrownBy(() -> Paper.read(folder))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("claims.csv:2: the end of");
        assertThatThrownBy(() -> Paper.named("mine"))
                .hasMessage(
                        "NAME: mine (expected: one of kazanavicius, weerasinghe, niswar, iwanowski, zhang, all, or a folder"
                                + " with a paper.yaml)");
        assertThatThrownBy(() -> Paper.named("zahng"))
                .hasMessageStartingWith("NAME: zahng (did you mean zhang? expected: one of kazanavicius, ");
    }

    @Test
    void aYearThatIsNoNumberIsToldWithItsPlace(@TempDir Path folder) throws Exception {
        Files.writeString(
                folder.resolve("paper.yaml"),
                "paper: mine\ntitle: T\nauthors: A\nyear: soon\npublished: here\n"
                        + "parts:\n  - part: one\n    place: all\n    about: a test\n");
        Files.writeString(folder.resolve("one.yaml"), "technologies: rest\nmessages: text:10\nloads: closed:1\n");
        assertThatThrownBy(() -> Paper.read(folder))
                .isInstanceOf(BadInput.class)
                .hasMessage(folder + "/paper.yaml: year: soon (expected: a whole number)");
    }
}
