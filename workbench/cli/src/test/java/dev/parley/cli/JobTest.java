package dev.parley.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.TimeZone;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;

@ResourceLock(Resources.TIME_ZONE)
class JobTest {
    @TempDir
    Path folder;

    private List<String> made(String... moments) throws IOException {
        TimeZone own = TimeZone.getDefault();
        TimeZone.setDefault(TimeZone.getTimeZone("Europe/Vilnius"));
        try {
            Stream.Builder<String> names = Stream.builder();
            for (String moment : moments) {
                Path made = Job.dated(folder, Instant.parse(moment));
                assertThat(made).isEmptyDirectory();
                names.add(made.getFileName().toString());
            }
            return names.build().toList();
        } finally {
            TimeZone.setDefault(own);
        }
    }

    @Test
    void runsThatBeginInOneSecondHaveAFolderEach() throws Exception {
        assertThat(made("2026-11-21T08:15:30.1Z", "2026-11-21T08:15:30.2Z", "2026-11-21T08:15:30.9Z"))
                .containsExactly("2026-11-21T08-15-30", "2026-11-21T08-15-30-2", "2026-11-21T08-15-30-3");
    }

    /** Both moments are 03:30 by the clocks of Vilnius, which go back by an hour at 01:00 UTC. */
    @Test
    void anHourThatComesTwiceInAutumnHasTwoNames() throws Exception {
        assertThat(made("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"))
                .containsExactly("2026-10-25T00-30-00", "2026-10-25T01-30-00");
    }
}
