package dev.parley.cli;

import dev.parley.lab.Lab;
import dev.parley.report.Report;
import dev.parley.report.Sitting;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * When a folder of {@code parley reproduce} was worked at, by which command and at which commit: a line a sitting. The
 * line is there from the sitting's begin on, so that one that is killed is told of too.
 */
final class Sittings {
    static final String FILE = "sittings.tsv";

    /** End of a sitting that goes on, or that was killed. */
    private static final String OPEN = "-";

    private Sittings() {}

    /** One that begins now. An earlier one that was killed ended when its last figure was written. */
    static void begin(Path folder, Instant began, String commit, String command) throws IOException {
        List<String> lines = endedAt(folder, lastWritten(folder, began));
        lines.add(String.join("\t", began.truncatedTo(ChronoUnit.SECONDS).toString(), OPEN, commit, command));
        write(folder, lines);
    }

    /** The one that was begun last ends now. */
    static void end(Path folder) throws IOException {
        write(folder, endedAt(folder, Instant.now()));
    }

    private static void write(Path folder, List<String> lines) {
        Report.write(
                folder.resolve(FILE), lines.stream().map(line -> line + "\n").collect(Collectors.joining()));
    }

    static List<Sitting> read(Path folder) throws IOException {
        return endedAt(folder, lastWritten(folder, Instant.now())).stream()
                .map(line -> line.split("\t", 4))
                .filter(fields -> fields.length == 4)
                .map(fields -> new Sitting(Instant.parse(fields[0]), Instant.parse(fields[1]), fields[2], fields[3]))
                .toList();
    }

    /** All lines, with an end for those that have none, which is not before their begin. */
    private static List<String> endedAt(Path folder, Instant end) throws IOException {
        List<String> lines = new ArrayList<>();
        Path file = folder.resolve(FILE);
        for (String line : Files.exists(file) ? Files.readAllLines(file) : List.<String>of()) {
            String[] fields = line.split("\t", 4);
            if (fields.length == 4 && fields[1].equals(OPEN)) {
                Instant began = Instant.parse(fields[0]);
                fields[1] = (end.isBefore(began) ? began : end)
                        .truncatedTo(ChronoUnit.SECONDS)
                        .toString();
            }
            lines.add(String.join("\t", fields));
        }
        return lines;
    }

    /** When a store below the folder was last written, and not later than an instant; long ago where there is none. */
    private static Instant lastWritten(Path folder, Instant atMost) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            Instant last = files.filter(file -> file.getFileName().toString().startsWith(Lab.STORE_FILE))
                    .map(Sittings::written)
                    .max(Instant::compareTo)
                    .orElse(Instant.EPOCH);
            return last.isBefore(atMost) ? last : atMost;
        } catch (UncheckedIOException e) {
            throw e.getCause();
        }
    }

    private static Instant written(Path file) {
        try {
            return Files.getLastModifiedTime(file).toInstant();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
