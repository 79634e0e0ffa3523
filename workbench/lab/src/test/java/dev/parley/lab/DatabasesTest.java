package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.backend.Backend;
import dev.parley.backend.BackendUnavailable;
import dev.parley.model.Topology;
import dev.parley.spi.Work;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DatabasesTest {
    @TempDir
    Path logs;

    private final TinyRun.Listener listener = new TinyRun.Listener();

    /** A server that does nothing but keep data, and that no half of another one's data is given to. */
    private record Server(String name, boolean isThere) implements Backend {
        @Override
        public Running start(Path folder, Consumer<String> told) {
            if (!isThere) {
                throw new BackendUnavailable(name + ": not here");
            }
            if (Files.exists(folder)) {
                throw new BackendUnavailable(name + ": " + folder + " is there already (expected: nothing)");
            }
            try {
                Files.writeString(
                        Files.createDirectories(folder.resolve("data")).resolve("rows"), "one, two");
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return new Up();
        }
    }

    private record Up() implements Backend.Running {
        @Override
        public String host() {
            return "127.0.0.1";
        }

        @Override
        public int port() {
            return 1;
        }

        @Override
        public String version() {
            return "1";
        }

        @Override
        public List<ProcessHandle> processes() {
            return List.of(ProcessHandle.current());
        }

        @Override
        public void close() {}
    }

    private Databases start(Function<String, Backend> backends) throws InterruptedException {
        return Databases.start(
                Work.named("lecturers"), List.of(Topology.parse("line:1")), backends, Map.of(), logs, listener);
    }

    /** A server that finds data that were not prepared to their end does not start. */
    @Test
    void whatALabThatWasKilledHasLeftIsGoneBeforeAServerStarts() throws Exception {
        Files.writeString(
                Files.createDirectories(logs.resolve("backends/m1.mysql/data")).resolve("half"), "of a database");
        try (Databases databases = start(name -> new Server(name, true))) {
            assertThat(databases.facts()).containsOnlyKeys("database m1.mysql", "database m1.redis");
            assertThat(logs.resolve("backends/m1.mysql/data")).isDirectoryContaining("glob:**/rows");
            assertThat(logs.resolve("backends/m1.mysql/data/half")).doesNotExist();
        }
        assertThat(logs.resolve("backends")).doesNotExist();
        assertThat(listener.notes).isEmpty();
    }

    @Test
    void whereOneCannotBeHadTheDataOfTheOthersGo() {
        assertThatThrownBy(() -> start(name -> new Server(name, name.equals("mysql"))))
                .isInstanceOf(LabException.class)
                .hasMessage("the work lecturers needs redis: redis: not here");
        assertThat(logs.resolve("backends/m1.mysql")).doesNotExist();
    }
}
