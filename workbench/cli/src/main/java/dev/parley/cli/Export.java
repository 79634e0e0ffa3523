package dev.parley.cli;

import dev.parley.lab.Lab;
import dev.parley.model.BadInput;
import dev.parley.store.ExportFormat;
import dev.parley.store.RunStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** A stored run for other programs. */
@Command(
        name = "export",
        description = {
            "Writes a stored run as CSV, JSON or Parquet, a file a table: run, machine, technology, setting, library, trial, outcome, second, figure, histogram.",
            ""
        },
        footer = {
            "",
            "Times are UTC; durations end in _ns; figures have their unit beside them; histograms are HdrHistogram V2 compressed, in Base64, nanoseconds.",
            "",
            "Exit codes: 0 good, 1 error."
        })
final class Export implements Callable<Integer> {
    @Parameters(paramLabel = "RUN", description = "The folder of the run.")
    private Path run = Path.of("");

    @Option(
            names = "--format",
            paramLabel = "F",
            defaultValue = "csv",
            description = "csv, json or parquet. Default: ${DEFAULT-VALUE}.")
    private String format = "";

    @Option(names = "--out", paramLabel = "DIR", required = true, description = "Where the files go; made if need be.")
    private Path out = Path.of("");

    @Override
    public Integer call() {
        ExportFormat chosen;
        try {
            chosen = ExportFormat.valueOf(format.toUpperCase(Locale.ROOT));
        } catch (IllegalArgumentException e) {
            throw new BadInput("--format", format, "csv, json or parquet");
        }
        Path file = Job.stored("RUN", run).resolve(Lab.STORE_FILE);
        try {
            Files.createDirectories(out);
        } catch (IOException e) {
            throw new BadInput("--out", out, "a folder that can be written");
        }
        try (RunStore store = RunStore.open(file)) {
            store.export(out, chosen).forEach(System.out::println);
        }
        return 0;
    }
}
