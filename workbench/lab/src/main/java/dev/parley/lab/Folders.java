package dev.parley.lab;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;

/** Folders that are of no use after what they were made for. */
final class Folders {
    private Folders() {}

    /** Deletes a folder with all that is in it, where it is there. */
    static void delete(Path folder) throws IOException {
        if (!Files.exists(folder)) {
            return;
        }
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(file);
            }
        } catch (UncheckedIOException e) {
            throw e.getCause();
        }
    }

    /** @throws LabException where none can be made */
    static Temporary temporary(String prefix) {
        try {
            return new Temporary(Files.createTempDirectory(prefix));
        } catch (IOException e) {
            throw new LabException("no temporary folder can be made: " + e.getMessage(), e);
        }
    }

    /** One among the system's temporary files. Closing deletes it with all that is in it. */
    record Temporary(Path path) implements AutoCloseable {
        @Override
        public void close() {
            try {
                delete(path);
            } catch (IOException e) {
                throw new LabException("the temporary folder " + path + " stays: " + e.getMessage(), e);
            }
        }
    }
}
