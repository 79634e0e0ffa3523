package dev.parley.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.report.Sitting;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SittingsTest {
    private static final Instant FIRST = Instant.parse("2026-01-02T08:00:00Z");
    private static final Instant LAST_FIGURE = Instant.parse("2026-01-02T09:10:00Z");
    private static final Instant SECOND = Instant.parse("2026-01-02T19:00:00Z");

    @TempDir
    Path folder;

    private Path store(Instant written) throws IOException {
        Path store = Files.createDirectories(folder.resolve("zhang/shared")).resolve("results.duckdb");
        Files.writeString(store, "");
        return Files.setLastModifiedTime(store, FileTime.from(written));
    }

    /** The page says the hours of each part: those of a sitting that was killed are among them. */
    @Test
    void aSittingThatWasKilledEndedWithItsLastFigure() throws IOException {
        Sittings.begin(folder, FIRST, "0123abc", "./parley reproduce zhang --for 2h");
        store(LAST_FIGURE);
        assertThat(Sittings.read(folder)).extracting(Sitting::ended).containsExactly(LAST_FIGURE);

        Sittings.begin(folder, SECOND, "4567def", "./parley reproduce --resume DIR --for 2h");
        store(SECOND.plusSeconds(600));
        Sittings.end(folder);
        assertThat(Sittings.read(folder)).extracting(Sitting::began).containsExactly(FIRST, SECOND);
        assertThat(Sittings.read(folder)).extracting(Sitting::commit).containsExactly("0123abc", "4567def");
        assertThat(Sittings.read(folder)).first().extracting(Sitting::ended).isEqualTo(LAST_FIGURE);
        assertThat(Sittings.read(folder))
                .last()
                .extracting(Sitting::command)
                .isEqualTo("./parley reproduce --resume DIR --for 2h");
        assertThat(Sittings.read(folder).getLast().ended()).isAfter(SECOND.plusSeconds(600));
    }

    /** A second name of the file goes on to show what the file was: what replaces it is another file. */
    @Test
    void whoIsKilledWhileASittingIsWrittenDownLeavesTheSittingsBeforeIt() throws IOException {
        Sittings.begin(folder, FIRST, "0123abc", "./parley reproduce zhang");
        Path before = Files.createLink(folder.resolve("before"), folder.resolve("sittings.tsv"));
        Sittings.begin(folder, SECOND, "4567def", "./parley reproduce --resume DIR");
        assertThat(Files.readAllLines(before)).hasSize(1);
        assertThat(Files.readAllLines(folder.resolve("sittings.tsv"))).hasSize(2);
    }

    @Test
    void aSittingThatWroteNoFigureEndedAsItBegan() throws IOException {
        Sittings.begin(folder, FIRST, "0123abc", "./parley reproduce zhang");
        Sittings.begin(folder, SECOND, "4567def", "./parley reproduce --resume DIR");
        assertThat(Sittings.read(folder)).extracting(Sitting::ended).containsExactly(FIRST, SECOND);
        assertThat(Sittings.read(Files.createDirectory(folder.resolve("other"))))
                .isEmpty();
    }
}
