package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.load.Event;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CeilingTest {
    private static Event.Finished trial(long replied, long notSent) {
        return new Event.Finished(
                1, 2_000_000_000L, 0, true, replied, 0, 0, 0, notSent, 0.3, 0, 0, 1, 0, 0, List.of(), "");
    }

    @Test
    void aThroughputNearTheGeneratorsOwnIsNotBelieved() {
        Ceiling ceiling = new Ceiling(10_000);
        assertThat(ceiling.complaint(trial(14_000, 0))).isEmpty();
        assertThat(ceiling.complaint(trial(14_000, 50_000))).isEmpty();
        assertThat(ceiling.complaint(trial(14_200, 0)))
                .contains(
                        "7100 requests/s are over 70 % of the 10000 that the load generator reaches here against a server that does nothing");
        assertThat(Ceiling.NONE.complaint(trial(1_000_000, 0))).isEmpty();
    }

    @Test
    void itIsMeasuredWithAGeneratorAndAServerOfItsOwn(@TempDir Path logs) throws InterruptedException {
        TinyRun.needPackages();
        Installation generator = new Installations(TinyRun.home(), Catalog.read()).bareGenerator();
        assertThat(Ceiling.measured(generator, logs, Duration.ofSeconds(1)).perSecond())
                .isGreaterThan(1_000);
        assertThat(ProcessHandle.current().descendants()).isEmpty();
    }
}
