package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What a technology says of itself, in a process of its own. */
class DescriptionTest {
    @TempDir
    Path folder;

    @BeforeAll
    static void services() {
        TinyRun.needPackages();
    }

    /** A study of a work leaves out the technologies that do not carry it. The two stand in one module. */
    @ParameterizedTest
    @CsvSource({"grpc, true", "grpc-messages, false"})
    void aTechnologySaysForWhichWorksItHasNoInterface(String technology, boolean carriesLecturers)
            throws InterruptedException {
        Installation both = Installation.of(
                TinyRun.home(), List.of("service", "transport/grpc", "work/messages", "work/lecturers"));
        try (Description description = new Description(technology, both, folder.resolve("describe.log"))) {
            assertThat(description.answer().name()).isEqualTo(technology);
            assertThat(description.carries("messages")).isTrue();
            assertThat(description.carries("lecturers")).isEqualTo(carriesLecturers);
        }
    }
}
