package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.parley.model.BadInput;
import dev.parley.model.FigureRow;
import dev.parley.model.LibraryRow;
import dev.parley.model.Metric;
import dev.parley.model.TrialSpec;
import dev.parley.protocol.Event;
import dev.parley.store.RunStore;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What technologies say they ask for, held against what their processes really run from. */
class InventoryTest {
    @TempDir
    Path out;

    @BeforeAll
    static void services() {
        TinyRun.needPackages();
    }

    @Test
    void everyVariantIsDescribedWithItsLibrariesAndTheirLicences() throws InterruptedException {
        List<Inventory.Entry> entries = new Inventory(Catalog.read()).of(List.of("grpc-tuned", "rpcx", "grpc"));

        assertThat(entries).extracting(e -> e.technology().name()).containsExactly("grpc-tuned", "rpcx", "grpc");
        assertThat(entries).allSatisfy(entry -> {
            assertThat(entry.isBeyondPapers()).isFalse();
            assertThat(entry.technology().encoding()).startsWith("Protobuf");
            assertThat(entry.libraries()).extracting(LibraryRow::licence).doesNotContain(LibraryRow.UNKNOWN, "");
            assertThat(entry.bytes())
                    .isEqualTo(entry.libraries().stream()
                            .mapToLong(LibraryRow::bytes)
                            .sum())
                    .isPositive();
        });
        assertThat(entries.getFirst().libraries())
                .anySatisfy(library -> {
                    assertThat(library.name()).isEqualTo("netty-buffer");
                    assertThat(library.version()).isNotEmpty();
                    assertThat(library.licence()).isEqualTo("Apache-2.0");
                })
                .anySatisfy(library -> {
                    assertThat(library.name()).isEqualTo("protobuf-java");
                    assertThat(library.licence()).isEqualTo("BSD-3-Clause");
                });
        assertThat(ProcessHandle.current().descendants()).isEmpty();
    }

    @Test
    void anUnknownNameIsSaid() {
        assertThatThrownBy(() -> new Inventory(Catalog.read()).of(List.of("soap")))
                .isInstanceOf(BadInput.class)
                .hasMessageContaining("soap");
    }

    @Test
    void theInstalledSizeIsThatOfTheFilesOnTheServicesClassPath() throws InterruptedException {
        assumeTrue(Files.isDirectory(Path.of("/proc/self")), "class paths of processes are read from /proc");
        Map<String, List<Path>> classPaths = new TreeMap<>();
        TinyRun.Listener listener = new TinyRun.Listener() {
            @Override
            public void progress(TrialSpec trial, Event.Progress progress) {
                ProcessHandle.current().descendants().forEach(process -> noteClassPath(process, classPaths));
            }
        };
        TinyRun.lab(listener).run(TinyRun.study(List.of("grpc"), 1, Duration.ofMillis(600)), out, "a test");

        assertThat(classPaths).containsKeys("m1", "m2");
        try (RunStore store = RunStore.open(out.resolve(Lab.STORE_FILE))) {
            classPaths.forEach((service, files) -> {
                long bytes = files.stream().mapToLong(InventoryTest::size).sum();
                assertThat(store.figures())
                        .filteredOn(f -> f.metric() == Metric.INSTALLED_SIZE
                                && f.subject().equals(service))
                        .isNotEmpty()
                        .allSatisfy(f -> assertThat(f.value()).isCloseTo(bytes / 1e6, within(1e-9)));
                assertThat(store.libraries())
                        .filteredOn(l -> l.technology().equals("grpc"))
                        .hasSize(files.size())
                        .satisfies(libraries -> assertThat(libraries.stream()
                                        .mapToLong(LibraryRow::bytes)
                                        .sum())
                                .isEqualTo(bytes));
            });
            assertThat(store.libraries())
                    .filteredOn(l -> l.technology().equals(FigureRow.EMPTY))
                    .isNotEmpty();
        }
    }

    /** What the kernel says that a service was started with. */
    private static void noteClassPath(ProcessHandle process, Map<String, List<Path>> classPaths) {
        List<String> words;
        try {
            words = List.of(Files.readString(Path.of("/proc/" + process.pid() + "/cmdline"))
                    .split("\0", -1));
        } catch (IOException gone) {
            return;
        }
        int flag = words.indexOf("-cp");
        words.stream().filter(word -> flag >= 0 && word.matches("name=m\\d+")).forEach(name -> {
            List<Path> files = new ArrayList<>();
            for (String file : words.get(flag + 1).split(File.pathSeparator, -1)) {
                files.add(Path.of(file));
            }
            classPaths.put(name.substring("name=".length()), files);
        });
    }

    private static long size(Path file) {
        try {
            return Files.size(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
