package dev.parley.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.analysis.Analysis;
import dev.parley.report.Results.LoadFindings;
import dev.parley.report.RunPage.Flag;
import dev.parley.report.RunPage.Named;
import dev.parley.store.RunStore;
import dev.parley.store.StoredStudy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the page holds, whatever its template makes of it. */
class RunPageTest {
    @TempDir
    static Path folder;

    private static Path file;
    private static RunPage well;
    private static RunPage troubled;

    @BeforeAll
    static void read() throws Exception {
        file = SampleStore.compare(Files.createDirectory(folder.resolve("well")), 5);
        well = RunPage.of(analysis(file), Optional.empty());
        troubled = RunPage.of(
                analysis(SampleStore.troubled(Files.createDirectory(folder.resolve("troubled")))), Optional.empty());
    }

    private static Analysis analysis(Path file) {
        try (RunStore store = RunStore.open(file)) {
            return Analysis.of(store);
        }
    }

    @Test
    void theTitleIsTheQuestionUnlessTheStudyHasOne() {
        assertThat(well.title())
                .isEqualTo("Five services in a line, two messages, 1 and 16 clients: which technology?");
        RunPage named = RunPage.of(analysis(file), Optional.of("Short messages"));
        assertThat(named.title()).isEqualTo("Short messages");
        assertThat(named.facts().getFirst()).isEqualTo(well.title());
    }

    @Test
    void theTitleOfTheStudyComesFromTheStore() throws Exception {
        Path other = Files.createDirectory(folder.resolve("named"));
        Path store = SampleStore.of("line:2", other);
        try (RunStore open = RunStore.resume(store)) {
            open.appendPlan(new StoredStudy("a digest", "study: Short & long\n"), List.of());
        }
        Report.of(store).writeTo(other);
        assertThat(Files.readString(other.resolve(Report.HTML)))
                .contains("<h1>Short &amp; long</h1>", "<title>Short &amp; long</title>");
    }

    @Test
    void theFirstScreenIsOfTheLoadWithTheMostClients() {
        assertThat(well.results().findings())
                .extracting(LoadFindings::load)
                .containsExactly("16 clients (closed load)", "1 client (closed load)");
        assertThat(well.lead()).singleElement().satisfies(drawing -> {
            assertThat(drawing.id()).isEqualTo("lead-latency_median-closed-16");
            assertThat(drawing.figures().rows()).as("messages × technologies").hasSize(2 * 3);
            assertThat(drawing.label()).endsWith("The table below holds the figures.");
        });
        assertThat(well.results().first())
                .hasValueSatisfying(
                        first -> assertThat(first.title()).isEqualTo("text:1000, line:5, 16 clients (closed load)"));
        assertThat(well.results().others()).hasSize(3);
    }

    @Test
    void whatFindingsRestOnIsSaidWithThem() {
        assertThat(well.results().basis())
                .hasSize(2)
                .first()
                .isEqualTo("This rests on 5 restarts; all 60 trials count.");
        assertThat(well.results().basis().getLast()).contains("need not be the quotient");
        assertThat(troubled.results().basis())
                .as("no ratio, no word about ratios")
                .singleElement()
                .asString()
                .startsWith("This rests on 2 restarts; ")
                .contains(" of 96 trials count (12 void, 1 failed or interrupted, 6 not run).");
    }

    @Test
    void ofManySituationsTheFirstAreToldAndTheOthersKept() {
        List<LoadFindings> first = troubled.results().findings();
        assertThat(first.stream().mapToInt(load -> load.lines().size()).sum()).isEqualTo(6);
        assertThat(troubled.results().further()).isEmpty();
        assertThat(first.getFirst().lines().getFirst().sentences())
                .anyMatch(sentence -> sentence.contains("nothing is decided; a verdict takes 3 restarts"))
                .anyMatch(sentence -> sentence.startsWith("Not compared: ") && sentence.contains("rabbitmq (void)"));
    }

    @Test
    void aTitleOfATechnologyStandsOnceAndItsNameElsewhere() {
        assertThat(well.technologies()).extracting(Named::title).containsExactly("HTTP REST (JSON)", "gRPC", "RPCX");
        assertThat(well.asked().technologies().rows())
                .extracting(row -> row.getFirst())
                .containsExactly("rest", "grpc", "rpcx");
        assertThat(well.html()).containsOnlyOnce("HTTP REST (JSON)");
    }

    /** The rehearsal plays three slices, or two: lab's Rehearsal. */
    @Test
    void theRulesSayHowManySlicesInARowAreQuiet() {
        assertThat(well.measured().rules())
                .anySatisfy(rule -> assertThat(rule)
                        .contains("until in three slices of load in a row, or two where slices are short, their"));
    }

    @Test
    void flagsCountWhatIsWanting() {
        assertThat(well.flags()).containsExactly(new Flag("", "closed load"), new Flag("", "5 restarts"));
        assertThat(troubled.flags())
                .contains(
                        new Flag("", "open and closed loads"),
                        new Flag("hint", "2 restarts: indicative, no verdicts"),
                        new Flag("bad", "12 void trials"),
                        new Flag("bad", "1 trial failed or interrupted"),
                        new Flag("bad", "6 trials not run"));
    }
}
