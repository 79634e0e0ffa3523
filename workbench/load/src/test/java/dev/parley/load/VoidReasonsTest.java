package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.Load;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class VoidReasonsTest {
    private static List<String> all(String load, double cpuShare) {
        return new VoidReasons(Load.parse(load), Outcomes.Counts.NONE, 100, 0, 0, cpuShare, 0, 1).all();
    }

    @ParameterizedTest
    @CsvSource({
        "closed:16, 0.7, 0",
        "closed:16, 0.9, 1",
        "open:100:even, 0.9, 1",
        "burst:100:3, 0.9, 1",
        // the client's threads are what a round measures
        "rounds:10x10:10:600s:shared, 1.9, 0"
    })
    void aBusyGeneratorVoidsWhatItIsNotPartOf(String load, double cpuShare, int reasons) {
        assertThat(all(load, cpuShare)).hasSize(reasons);
    }
}
