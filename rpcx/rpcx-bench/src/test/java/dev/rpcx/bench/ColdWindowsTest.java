package dev.rpcx.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ColdWindowsTest {
    @TempDir
    Path folder;

    private static void window(FigureStore store, String peer, double callsPerSecond, double compilerShare)
            throws IOException {
        store.add(
                "window",
                Bench.PINNED,
                peer,
                new Figures(callsPerSecond, 30, 90, 40, 100, 100, compilerShare, 3_000).toLine());
    }

    private static Targets.Line oneCore(FigureStore store) {
        return Targets.judged(store).stream()
                .filter(line -> line.row().equals(Bench.PINNED))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void whatIsColdHasNoFigureNoRatioAndNoVerdict() throws IOException {
        FigureStore store = new FigureStore("");
        window(store, "rpcx", 22_985, 0.04);
        window(store, "grpc", 342, 0.71);

        assertThat(oneCore(store).figure()).isEqualTo("–");
        assertThat(oneCore(store).verdict()).isEqualTo("cold, or not measured");
        assertThat(Tables.markdown(store))
                .contains("| rpcx | 22,985 |", "| grpc | cold: compilers took 71 % after 3 s |")
                .doesNotContain("342");
    }

    @Test
    void roundsThatWereColdDoNotCountBesideMoreThatWereWarm() throws IOException {
        FigureStore store = new FigureStore("");
        window(store, "rpcx", 20_000, 0.04);
        window(store, "grpc", 4_000, 0.05);
        window(store, "grpc", 5_000, 0.10);
        window(store, "grpc", 342, 0.11);

        assertThat(oneCore(store).figure()).isEqualTo("4.44 ×");

        window(store, "grpc", 342, 0.5);
        window(store, "grpc", 342, 0.5);
        assertThat(oneCore(store).verdict()).isEqualTo("cold, or not measured");
    }

    @Test
    void aColdCellOfTheGridIsSaidToBeSo() throws IOException {
        FigureStore store = new FigureStore("");
        store.add("cell", Bench.cell(10, 100), "rpcx", 15_000.0, 0.02);
        store.add("cell", Bench.cell(10, 100), "grpc", 700.0, 0.4);

        assertThat(Tables.markdown(store)).contains("| 10 × 100 | cold | 15,000 |");
    }

    @Test
    void warmUpGoesOnUntilCompilersAreDoneOrTheTimeIsOver() {
        WarmUp warmUp = new WarmUp(3_000, 60_000);

        assertThat(warmUp.isOver(0.10, 3_000)).isTrue();
        assertThat(warmUp.isOver(0.11, 59_999)).isFalse();
        assertThat(warmUp.isOver(0.11, 60_000)).isTrue();
        assertThatThrownBy(() -> new WarmUp(3_000, 2_999)).hasMessageContaining("expected: a slice");
    }

    @Test
    void shareIsOfWhatHasPassedSinceAndOfNothingNothingIsSaid() {
        assertThat(new Compilers(300, 60).shareSince(new Compilers(100, 40))).isEqualTo(0.1);
        assertThat(new Compilers(100, 40).shareSince(new Compilers(100, 40))).isEqualTo(1);
    }

    @Test
    void figuresThatDoNotSayWhatCompilersTookAreNotGoneOnWith() throws IOException {
        Path file = folder.resolve("kept");
        Files.write(file, Collections.singleton("case\t" + Bench.PINNED + "\tgrpc\t342 1 1 1 1 1 0 0"));

        assertThatThrownBy(() -> new FigureStore(file.toString())).hasMessageContaining("compilers");
    }
}
