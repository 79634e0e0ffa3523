package dev.parley.analysis;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.FigureRow;
import dev.parley.model.HistogramRow;
import dev.parley.model.Load;
import dev.parley.model.SecondRow;
import dev.parley.model.TrialRow;
import dev.parley.model.TrialSpec;
import dev.parley.store.RunStore;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which trials of a run count, and why the others do not: told from rows as they are stored. */
class RunRowsTest {
    private static TrialSpec spec(int id, String technology, int clients) {
        return SampleRows.spec(id, technology, "text:10", new Load.Closed(clients), 1, 1);
    }

    private static JudgedTrial judged(TrialSpec spec, TrialRow.State state, String... reasons) {
        return new JudgedTrial(SampleRows.ended(spec, state, List.of(reasons)), List.of(reasons));
    }

    private static JudgedTrial finished(int id, String... reasons) {
        return judged(spec(id, "rest", 1), TrialRow.State.FINISHED, reasons);
    }

    private static RunRows rows(List<TrialSpec> plan, JudgedTrial... trials) {
        return new RunRows(SampleRows.RUN, plan, List.of(trials), Map.of(), Map.of(), Map.of(), List.of());
    }

    @Test
    void cellsComeInTheOrderOfTheirTechnologiesAndThenOfThePlan() {
        TrialSpec other = spec(0, "thrift", 1);
        TrialSpec grpc = spec(1, "grpc", 1);
        TrialSpec many = spec(2, "rest", 16);
        TrialSpec one = spec(3, "rest", 1);
        TrialSpec again = spec(4, "rest", 16);
        RunRows rows = rows(
                List.of(other, grpc, many, one, again),
                judged(again, TrialRow.State.FINISHED),
                judged(grpc, TrialRow.State.FAILED),
                judged(spec(9, "rpcx", 1), TrialRow.State.FINISHED),
                judged(many, TrialRow.State.FINISHED));
        assertThat(rows.cells().keySet()).containsExactly(Cell.of(many), Cell.of(one), Cell.of(grpc), Cell.of(other));
        assertThat(rows.cells().get(Cell.of(many)))
                .extracting(trial -> trial.row().spec().id())
                .containsExactly(4, 2);
        assertThat(rows.cells().get(Cell.of(one))).isEmpty();
        assertThat(rows.cells().get(Cell.of(grpc))).hasSize(1);
    }

    @Test
    void validTrialsCountElseThoseNotShownToBeWarmElseVoidOnes() {
        JudgedTrial valid = finished(1);
        JudgedTrial cold = finished(2, "cold: compilers");
        JudgedTrial unknown = finished(3, "unknown: nothing tells");
        JudgedTrial wrong = finished(4, "3 wrong replies", "cold: compilers");
        JudgedTrial failed = judged(spec(5, "rest", 1), TrialRow.State.FAILED);
        assertThat(RunRows.counted(List.of(failed, wrong, unknown, cold, valid)))
                .containsExactly(valid);
        assertThat(RunRows.counted(List.of(failed, wrong, unknown, cold))).containsExactly(unknown, cold);
        assertThat(RunRows.counted(List.of(failed, wrong, unknown))).containsExactly(unknown);
        assertThat(RunRows.counted(List.of(failed, wrong, cold))).containsExactly(cold);
        assertThat(RunRows.counted(List.of(failed, wrong))).containsExactly(wrong);
        assertThat(RunRows.counted(List.of(failed))).isEmpty();
    }

    private static byte[] times(int count) {
        return Encoded.of(SampleRows.times(count, 1));
    }

    /** What is stored of one trial, and what is said against it. */
    private static List<String> reasons(
            Path folder,
            TrialRow.State state,
            List<String> stored,
            List<SecondRow> seconds,
            List<HistogramRow> histograms,
            List<FigureRow> figures) {
        TrialSpec spec = spec(7, "rest", 1);
        try (RunStore store = SampleRows.store(folder)) {
            store.appendPlan(List.of(spec, spec(8, "rest", 1)));
            store.append(SampleRows.ended(spec, state, stored), seconds, histograms, figures);
            store.append(
                    SampleRows.ended(spec(8, "rest", 1), TrialRow.State.FINISHED, List.of()),
                    List.of(new SecondRow(8, 0, 1, 0, 5, 0, 0, times(1))),
                    List.of(),
                    List.of());
            RunRows rows = RunRows.of(store);
            assertThat(rows.run().technologies()).hasSize(2);
            assertThat(rows.plan()).hasSize(2);
            assertThat(rows.libraries()).isEmpty();
            return rows.trials().getFirst().reasons();
        }
    }

    private static final List<SecondRow> LEVEL = List.of(new SecondRow(7, 0, 1_000, 0, 0, 0, 0, times(1_000)));

    private static final List<HistogramRow> HALVES = List.of(
            new HistogramRow(7, HistogramRow.Kind.FIRST_HALF, "client", times(500)),
            new HistogramRow(7, HistogramRow.Kind.SECOND_HALF, "client", times(500)));

    private static final List<FigureRow> QUIET = List.of(SampleRows.compiling(7, 3));

    private static final String OFF = "Little's law off by -50 %: 0.50 requests in the system, 1 clients";

    @Test
    void aTrialIsJudgedByItsOwnSecondsHalvesAndFigures(@TempDir Path folder) {
        assertThat(reasons(folder, TrialRow.State.FINISHED, List.of(), LEVEL, HALVES, QUIET))
                .isEmpty();
    }

    @Test
    void eachKindOfRowIsNeeded(@TempDir Path folder) {
        assertThat(reasons(folder, TrialRow.State.FINISHED, List.of("swap seen"), List.of(), List.of(), List.of()))
                .containsExactly(
                        "swap seen",
                        "no request was due",
                        "unknown: how much processor time compilers took was not seen",
                        "unknown: the window was not kept in halves, so that nothing tells whether latency still fell");
    }

    @Test
    void whatTheSecondsContradictIsSaidAfterWhatWasStored(@TempDir Path folder) {
        List<SecondRow> half = List.of(new SecondRow(7, 0, 500, 0, 0, 0, 0, times(500)));
        assertThat(reasons(folder, TrialRow.State.FINISHED, List.of("swap seen"), half, HALVES, QUIET))
                .containsExactly("swap seen", OFF);
    }

    @Test
    void littlesLawIsNotToldTwiceAndNothingElseIsLeftOut(@TempDir Path folder) {
        List<SecondRow> half = List.of(new SecondRow(7, 0, 500, 0, 3, 0, 0, times(500)));
        List<HistogramRow> errors = new ArrayList<>(HALVES);
        errors.add(new HistogramRow(7, HistogramRow.Kind.ERROR, "client", times(3)));
        assertThat(reasons(
                        folder,
                        TrialRow.State.FINISHED,
                        List.of("Little's law is off: 0.50"),
                        half,
                        errors,
                        List.of(SampleRows.compiling(7, 12))))
                .containsExactly(
                        "Little's law is off: 0.50",
                        "3 wrong replies",
                        "cold: compilers took 12.0 % of the services' processor time (at most 10 %)");
    }

    @Test
    void aTrialThatDidNotFinishHasOnlyWhatWasStoredOfIt(@TempDir Path folder) {
        assertThat(reasons(folder, TrialRow.State.FAILED, List.of("swap seen"), LEVEL, List.of(), List.of()))
                .containsExactly("swap seen");
    }
}
