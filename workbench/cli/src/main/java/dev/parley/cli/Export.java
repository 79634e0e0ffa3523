package dev.parley.cli;

import dev.parley.lab.Lab;
import dev.parley.model.BadInput;
import dev.parley.store.ExportFormat;
import dev.parley.store.RunStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** A stored run for other programs. */
@Command(
        name = "export",
        description = {"Writes the rows of a stored run as CSV, JSON or Parquet, for other programs.", ""},
        footer = {
            "",
            "Writes one file for each table into DIR, over those that are there, and prints their names: run, machine,"
                    + " technology, setting, library, trial, outcome, second, figure, histogram.",
            "",
            "Times are UTC; durations are in nanoseconds and their names end in _ns; figures have their unit beside"
                    + " them; histograms are of nanoseconds, in HdrHistogram's compressed V2 form, in Base64.",
            "",
            "Exit codes: 0 good, 1 error.",
            "",
            "Example: ${ROOT-COMMAND-NAME} export results/2026-11-21T08-15-30 --format parquet --out rows"
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

    @Option(
            names = "--out",
            paramLabel = "DIR",
            required = true,
            description = "Folder for the files; made if need be.")
    private Path out = Path.of("");

    @Override
    public Integer call() {
        ExportFormat chosen;
        try {
            chosen = ExportFormat.valueOf(format.toUpperCase(Locale.ROOT));
        } catch (IllegalArgumentException e) {
            throw BadInput.near("--format", format, List.of("csv", "json", "parquet"), "csv, json or parquet");
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
