package dev.parley.cli;

import dev.parley.lab.Lab;
import dev.parley.model.BadInput;
import dev.parley.report.Report;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.file.Path;

/** What stands in a run's folder beside the store, made from the store alone. */
final class Results {
    private Results() {}

    /** Writes the files, prints the table, and tells where the report is. */
    static Path write(Path folder, PrintStream out) {
        Report report = Report.of(folder.resolve(Lab.STORE_FILE));
        try {
            Path written = report.writeTo(folder);
            out.println();
            out.print(report.table());
            out.println();
            out.print(report.warmth());
            return written;
        } catch (UncheckedIOException e) {
            throw new BadInput("report", folder, "a folder that can be written: " + e.getMessage());
        }
    }
}
