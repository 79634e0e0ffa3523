package dev.parley.cli;

import dev.parley.lab.Lab;
import dev.parley.report.Sitting;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;

/** When a folder of {@code parley reproduce} was worked at, by which command and at which commit: a line a sitting. */
final class Sittings {
    private static final String FILE = "sittings.tsv";

    private Sittings() {}

    /** One that ends now. */
    static void add(Path folder, Instant began, String command) throws IOException {
        Files.writeString(
                folder.resolve(FILE),
                String.join(
                                "\t",
                                began.truncatedTo(ChronoUnit.SECONDS).toString(),
                                Instant.now().truncatedTo(ChronoUnit.SECONDS).toString(),
                                Lab.commit(),
                                command)
                        + "\n",
                StandardOpenOption.CREATE,
                StandardOpenOption.APPEND);
    }

    static List<Sitting> read(Path folder) throws IOException {
        Path file = folder.resolve(FILE);
        if (!Files.exists(file)) {
            return List.of();
        }
        return Files.readAllLines(file).stream()
                .map(line -> line.split("\t", 4))
                .filter(fields -> fields.length == 4)
                .map(fields -> new Sitting(Instant.parse(fields[0]), Instant.parse(fields[1]), fields[2], fields[3]))
                .toList();
    }
}
