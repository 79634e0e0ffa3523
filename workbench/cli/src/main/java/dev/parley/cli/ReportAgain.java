package dev.parley.cli;

import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

/** The report of a stored run, made anew without running anything. */
@Command(
        name = "report",
        description = {"Makes table and report of a stored run anew, and measures nothing.", ""},
        footer = {
            "",
            "Writes report.html, summary.csv, details.csv, summary.json and, where the run's study has a target,"
                    + " targets.csv into DIR, over those that are there. results.duckdb is read, and stays as it is."
                    + " Prints the table.",
            "",
            "Exit codes: 0 good, 1 error.",
            "",
            "Example: ${ROOT-COMMAND-NAME} report results/2026-11-21T08-15-30"
        })
final class ReportAgain implements Callable<Integer> {
    @Parameters(paramLabel = "DIR", description = "The folder of the run.")
    private Path folder = Path.of("");

    @Override
    public Integer call() {
        System.out.println("report: " + Results.write(Job.stored("DIR", folder), System.out));
        return 0;
    }
}
