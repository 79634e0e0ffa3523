package dev.parley.cli;

import dev.parley.lab.Lab;
import dev.parley.model.BadInput;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

/** The report of a stored run, made anew without running anything. */
@Command(
        name = "report",
        description = "Builds table, report, summary.csv and summary.json anew from a stored run; runs nothing.")
final class ReportAgain implements Callable<Integer> {
    @Parameters(paramLabel = "DIR", description = "The folder of a run, such as results/2026-11-21T08-15-30.")
    private Path folder = Path.of("");

    @Override
    public Integer call() {
        if (!Files.isRegularFile(folder.resolve(Lab.STORE_FILE))) {
            throw new BadInput("DIR", folder, "a folder with " + Lab.STORE_FILE + " in it");
        }
        System.out.println("report: " + Results.write(folder, System.out));
        return 0;
    }
}
