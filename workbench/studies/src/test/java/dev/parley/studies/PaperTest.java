package dev.parley.studies;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.BadInput;
import dev.parley.model.Load;
import dev.parley.model.Metric;
import dev.parley.model.Study;
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

class PaperTest {
    private static final List<String> NAMES = Paper.NAMES;

    private static final Map<Part, Study> PUBLISHED = new HashMap<>();

    /** As if everything that the papers measured were here; each is read once, as the claims ask for them thousands of times. */
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

    /** A misspelt condition would pass for something that was not measured. */
    @ParameterizedTest
    @FieldSource("NAMES")
    void everyClaimAsksForSomethingThatIsPlanned(String name) {
        Paper paper = Paper.named(name);
        for (Claim claim : paper.claims()) {
            List<Cell> asked = new ArrayList<>();
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

    private static long matches(Paper paper, Cell cell) {
        long found = 0;
        for (Part part : paper.parts()) {
            Study study = published(part);
            long loads = paper.loads(cell.condition("load"), study).size();
            boolean isHere =
                    (cell.condition("part").isEmpty() || cell.condition("part").equals(part.name()))
                            && study.technologies().contains(cell.condition("technology"))
                            && one(cell.condition("topology"), study.topologies())
                            && one(cell.condition("message"), study.messages());
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
                    if (!(published instanceof Load.Open)) {
                        assertThat(scaled.amount()).isEqualTo(published.amount());
                    }
                });
            }
        }
    }

    @Test
    void aSlowRateKeepsTheNumberOfItsRequests() {
        Part part = Paper.named("niswar").parts().get(1);
        Scale.Scaled quick = part.study(part.technologies(), Scale.QUICK).orElseThrow();
        assertThat(quick.study().effort().window()).isEqualTo(Duration.ofSeconds(1));
        assertThat(quick.loads().get(Load.parse("open:1:even"))).hasToString("open:300:even");
    }

    @Test
    void whatIsNotHereIsLeftOutAndTold() {
        Part part = Paper.named("kazanavicius").parts().getFirst();
        List<String> here = List.of("rest", "grpc", "graphql", "rpcx");
        assertThat(part.missing(here)).containsExactly("rabbitmq", "kafka");
        assertThat(part.study(here).orElseThrow().technologies()).containsExactly("rest", "grpc", "graphql");
        assertThat(part.study(List.of("rpcx"))).isEqualTo(Optional.empty());
    }

    @Test
    void aMetricOfThePaperIsAnExpressionOverOurs() {
        Map<String, Double> runtimes = Map.of("rpcx", 20.0, "grpc", 80.0);
        Measured change = Paper.named("zhang")
                .measured(
                        new Cell("grid_runtime_change", Map.of("technology", "rpcx/grpc", "load", "grid:10x100")),
                        cell -> {
                            assertThat(cell.metric()).isEqualTo("step_time");
                            assertThat(cell.condition("load")).isEqualTo("grid:10x100");
                            return Measured.number(runtimes.get(cell.condition("technology")));
                        });
        assertThat(change.value()).isEqualTo(75);
    }

    @Test
    void theGuidesExampleIsWhole() {
        Paper paper = Paper.read(Path.of("../../docs/examples/short-messages"));
        assertThat(paper.claims()).hasSize(2);
        Study study = published(paper.parts().getFirst());
        assertThat(paper.figures())
                .isNotEmpty()
                .allSatisfy(
                        figure -> assertThat(paper.loads(figure.load(), study)).hasSize(1));
    }

    @Test
    void aStudyOfOnesOwnIsAFolder(@TempDir Path folder) throws Exception {
        Files.writeString(
                folder.resolve("paper.yaml"),
                "paper: mine\ntitle: T\nauthors: A\nyear: 2026\npublished: here\nparts:\n  - part: one\n    place: all\n    about: a test\n");
        Files.writeString(folder.resolve("one.yaml"), "technologies: rest\nmessages: text:10\nloads: closed:1\n");
        Files.writeString(
                folder.resolve("figures.csv"), "place,technology,metric,value,unit\nTable 1,rest,latency_mean,7,ms\n");
        Files.writeString(folder.resolve("claims.csv"), "id,place,sentence,expression\nc,1,It is.,latency_mean < 8\n");
        assertThat(Paper.read(folder).citation()).isEqualTo("A (2026): T. here.");
        Files.writeString(folder.resolve("claims.csv"), "id,place,sentence,expression\nc,1,It is.,latency_mean < \n");
        assertThatThrownBy(() -> Paper.read(folder))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("claims.csv:2: the end of");
        assertThatThrownBy(() -> Paper.named("mine"))
                .hasMessage(
                        "NAME: mine (expected: one of kazanavicius, weerasinghe, niswar, iwanowski, zhang, all, or a folder with a paper.yaml)");
    }
}
