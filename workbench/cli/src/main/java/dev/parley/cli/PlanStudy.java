package dev.parley.cli;

import dev.parley.lab.Catalog;
import dev.parley.lab.Lab;
import dev.parley.lab.Plan;
import dev.parley.model.Study;
import dev.parley.model.TrialSpec;
import dev.parley.spi.Work;
import dev.parley.studies.StudyFile;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** How much a study is. */
@Command(
        name = "plan",
        description = {
            "Says how many trials a study has, about how long they take, and whether this machine can keep its limits."
                    + " Measures nothing, and writes nothing.",
            ""
        },
        footer = {
            "",
            "The time is a range: services rehearse until they are warm, and nobody knows how soon that is. While a"
                    + " study runs, the time that is left follows what its trials took.",
            "",
            "Exit codes: 0 the study can be run here, 1 mistakes, or limits that this machine cannot keep.",
            "",
            "Example: ${ROOT-COMMAND-NAME} plan --trials study.yaml"
        })
final class PlanStudy implements Callable<Integer> {
    @Parameters(paramLabel = "SPEC", description = "The study's file; docs/specs.md says what stands in it.")
    private Path file = Path.of("");

    @Option(names = "--trials", description = "List every trial, in the order in which they are carried out.")
    private boolean isList;

    @Override
    public Integer call() throws InterruptedException {
        Catalog catalog = Catalog.read();
        Study study = StudyFile.read(file, catalog.names());
        Lab lab = new Lab(catalog, Progress.toTerminal());
        lab.check(study);
        lab.checkReach(study);
        Plan plan = Plan.of(study);
        System.out.println(study.title());
        System.out.println(study.technologies().size() + " technologies × "
                + study.topologies().size() + " topologies × "
                + offered(study) + " × "
                + study.restarts() + " restarts = "
                + plan.trials().size() + " trials in " + plan.boots().size() + " boots of services");
        System.out.println("about " + plan.estimate() + (plan.isOpenEnded() ? Progress.LONGER : "")
                + (Work.named(study.work()).backends().isEmpty() ? "" : ", and the start of the databases"));
        if (isList) {
            for (TrialSpec trial : plan.trials()) {
                System.out.println("trial " + (trial.id() + 1) + ": restart " + trial.restart() + ", "
                        + trial.technology() + " on " + trial.topology() + ", " + trial.message() + ", "
                        + trial.load());
            }
        }
        return 0;
    }

    private static String offered(Study study) {
        String each = study.offerings().stream()
                .map(o -> o.messages().size() + " messages × " + o.loads().size() + " loads")
                .collect(Collectors.joining(" + "));
        return study.offerings().size() == 1 ? each : "(" + each + ")";
    }
}
