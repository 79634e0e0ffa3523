package dev.parley.cli;

import dev.parley.lab.Catalog;
import dev.parley.lab.Plan;
import dev.parley.model.BadInput;
import dev.parley.model.Study;
import dev.parley.studies.LoadHelp;
import dev.parley.studies.StudyFile;
import dev.parley.studies.StudyText;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Is this file a study? */
@Command(
        name = "validate",
        description = {
            "Reads a study's file and tells all of its mistakes, each with line, key, value and what was expected."
                    + " Measures nothing, and writes nothing.",
            ""
        },
        footer = {
            "",
            "Whether this machine can keep the study's limits is told by ${ROOT-COMMAND-NAME} plan.",
            "",
            "Exit codes: 0 good, 1 mistakes.",
            "",
            "Examples:",
            "  ${ROOT-COMMAND-NAME} validate study.yaml",
            "  ${ROOT-COMMAND-NAME} validate --schema > study.schema.json"
        })
final class Validate implements Callable<Integer> {
    @Parameters(
            paramLabel = "SPEC",
            arity = "0..1",
            description = "The study's file; docs/specs.md says what stands in it.")
    private Optional<Path> file = Optional.empty();

    @Option(
            names = "--schema",
            description = "Print the JSON Schema of studies, with which editors complete and check them.")
    private boolean isSchema;

    @Option(names = "--loads", description = "Print what loads there are, with their parameters and short forms.")
    private boolean isLoads;

    @Option(names = "--full", description = "Print the study with every default written out, as a run keeps it.")
    private boolean isFull;

    @Override
    public Integer call() {
        if (isSchema) {
            System.out.print(StudyFile.schema());
            return 0;
        }
        if (isLoads) {
            System.out.print(LoadHelp.table());
            return 0;
        }
        Path given = file.orElseThrow(() -> new BadInput("SPEC", "none", "a study file, --schema or --loads"));
        Study study = StudyFile.read(given, Catalog.read().names());
        if (isFull) {
            System.out.print(StudyText.of(study));
        } else {
            System.out.println(
                    given + ": good, " + Plan.of(study).trials().size() + " trials; digest " + StudyText.digest(study));
        }
        return 0;
    }
}
