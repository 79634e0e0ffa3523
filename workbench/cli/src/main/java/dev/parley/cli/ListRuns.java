package dev.parley.cli;

import dev.parley.lab.Lab;
import dev.parley.model.BadInput;
import dev.parley.model.Run;
import dev.parley.model.Technology;
import dev.parley.model.TrialRow;
import dev.parley.store.RunStore;
import dev.parley.store.StoreException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** What runs there are. */
@Command(
        name = "list",
        description = {
            "Lists the stored runs in a folder: where each is, how many of its trials finished, its technologies and"
                    + " its command. Writes nothing.",
            ""
        },
        footer = {
            "",
            "Exit codes: 0 good, also where there is no run; 1 error.",
            "",
            "Examples:",
            "  ${ROOT-COMMAND-NAME} list",
            "  ${ROOT-COMMAND-NAME} list --in elsewhere"
        })
final class ListRuns implements Callable<Integer> {
    /** Where runs go without {@code --out}; there need not have been one yet. */
    private static final String USUAL = "results";

    @Option(
            names = "--in",
            paramLabel = "DIR",
            defaultValue = USUAL,
            description = "Folder whose folders are looked into. Default: ${DEFAULT-VALUE}.")
    private Path folder = Path.of("");

    @Override
    public Integer call() {
        List<Path> runs;
        if (!Files.exists(folder) && folder.toString().equals(USUAL)) {
            System.out.println("no runs in " + folder);
            return 0;
        }
        if (!Files.isDirectory(folder)) {
            throw new BadInput("--in", folder, "a folder");
        }
        try (Stream<Path> folders = Files.list(folder)) {
            runs = folders.filter(f -> Files.isRegularFile(f.resolve(Lab.STORE_FILE)))
                    .sorted()
                    .toList();
        } catch (IOException e) {
            throw new BadInput("--in", folder, "a folder that can be read (" + e.getMessage() + ")");
        }
        runs.forEach(run -> System.out.println(line(run)));
        if (runs.isEmpty()) {
            System.out.println("no runs in " + folder);
        }
        return 0;
    }

    private static String line(Path folder) {
        try (RunStore store = RunStore.open(folder.resolve(Lab.STORE_FILE))) {
            Run run = store.run();
            List<TrialRow> trials = store.trials();
            long finished = trials.stream()
                    .filter(t -> t.state() == TrialRow.State.FINISHED)
                    .count();
            return folder + "  " + finished + " of " + store.plan().size() + " trials  "
                    + run.technologies().stream().map(Technology::name).collect(Collectors.joining(",")) + "  "
                    + run.command();
        } catch (StoreException e) {
            return folder + "  " + (e.code() == StoreException.Code.LOCKED ? "under way" : e.getMessage());
        }
    }
}
