package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.parley.model.FigureRow;
import dev.parley.model.Metric;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EmptyServiceTest {
    /** Every service is asked at each trial what it has served, and keeps the classes that answer. */
    @Test
    void itsMemoryAfterLoadHoldsWhatItsAnswersToTheLabTake(@TempDir Path folder) throws InterruptedException {
        List<Path> classPath = Arrays.stream(
                        System.getProperty("java.class.path").split(File.pathSeparator, -1))
                .map(Path::of)
                .filter(Files::exists)
                .toList();
        Map<Metric, Double> figures =
                EmptyService.measure(new Installation(classPath), 0, folder.resolve("empty.log")).stream()
                        .collect(Collectors.toMap(FigureRow::metric, FigureRow::value));
        assertThat(figures).containsKeys(Metric.BOOT_TIME, Metric.INSTALLED_SIZE);
        assumeTrue(figures.containsKey(Metric.MEMORY_AFTER_BOOT), "this system does not tell the memory of a process");
        assertThat(figures.getOrDefault(Metric.MEMORY_AFTER_LOAD, 0.0))
                .isGreaterThan(figures.getOrDefault(Metric.MEMORY_AFTER_BOOT, 0.0));
    }
}
