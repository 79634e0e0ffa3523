package dev.parley.cli;

import dev.parley.lab.Lab;
import dev.parley.report.Report;
import java.io.PrintStream;
import java.nio.file.Path;

/** What stands in a run's folder beside the store, made from the store alone. */
final class Results {
    private Results() {}

    /** Writes the files, prints the table, and tells where the report is. */
    static Path write(Path folder, PrintStream out) {
        Report report = Report.of(folder.resolve(Lab.STORE_FILE));
        Path written = report.writeTo(folder);
        out.println(report.table());
        return written;
    }
}
