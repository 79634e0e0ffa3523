package dev.parley.backend;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

/** What the databases have in common: their user, and their folder. */
final class Database {
    /**
     * User, password and database of every server that is started here; a server that somebody else runs must have them
     * too.
     */
    static final String NAME = "parley";

    static final Duration TO_START = Duration.ofSeconds(60);

    private Database() {}

    /** Makes the folder if it is not there, and returns its absolute path. */
    static Path folder(String name, Path folder) {
        Path own = folder.toAbsolutePath().normalize();
        try {
            return Files.createDirectories(own);
        } catch (IOException e) {
            throw new BackendUnavailable(name + ": " + own + " cannot be written: " + e.getMessage(), e);
        }
    }

    /** Waits for a program that prepares a server's data; what it says stands in {@code log}. */
    static void prepare(String name, ProcessBuilder program, Path log) throws InterruptedException {
        try {
            Process process = program.redirectErrorStream(true)
                    .redirectOutput(log.toFile())
                    .start();
            process.getOutputStream().close();
            int exit = process.waitFor();
            if (exit != 0) {
                throw new BackendUnavailable(
                        name + ": its data could not be prepared (exit code " + exit + "); log: " + log);
            }
        } catch (IOException e) {
            throw new BackendUnavailable(name + ": its data could not be prepared: " + e.getMessage(), e);
        }
    }
}
