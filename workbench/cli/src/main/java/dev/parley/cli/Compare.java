package dev.parley.cli;

import dev.parley.analysis.RunComparison;
import dev.parley.lab.Catalog;
import dev.parley.lab.Lab;
import dev.parley.lab.WorkChoice;
import dev.parley.model.BadInput;
import dev.parley.model.Limits;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Study;
import dev.parley.model.Study.Effort;
import dev.parley.model.Topology;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.function.Function;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** The main job. */
@Command(
        name = "compare",
        description = {
            "Measures technologies side by side on one topology; or compares two runs that are stored already.",
            ""
        },
        footer = {
            "",
            "Before it measures it says about how long that takes. Ctrl-C ends it, and what was measured is kept.",
            "",
            Job.WRITES + " With two folders of runs it writes nothing.",
            "",
            "Exit codes: 0 good, 1 error or some trials failed, 2 two runs have no figure in common that can be"
                    + " compared.",
            "",
            "Examples:",
            "  parley compare --quick",
            "  parley compare --technologies rest,grpc,rpcx --messages types:100 --clients 1,16 --quick",
            "  parley compare results/2026-11-21T08-15-30 results/2026-11-22T09-00-00"
        })
final class Compare implements Callable<Integer> {
    /**
     * Five services of one technology have some 45 s of code to compile on two cores, once a restart: more than five
     * minutes hold.
     */
    private static final String QUICK_TOPOLOGY = "line:2";

    /** A second message would have more to compile: a minute in six boots. */
    private static final String QUICK_MESSAGES = "types:100";

    @Parameters(
            paramLabel = "RUN",
            arity = "0..2",
            description =
                    "The folders of two stored runs, without any option: compares the second with the first and"
                            + " measures nothing.")
    private List<Path> runs = List.of();

    @Option(
            names = "--technologies",
            paramLabel = "LIST",
            defaultValue = "rest,grpc,rpcx",
            description =
                    "Names with commas between them, as parley technologies lists them; papers: what the papers"
                            + " measured; all: that and more. Neither has variants in it, such as grpc-tuned. Default:"
                            + " ${DEFAULT-VALUE}.")
    private String technologies = "";

    @Option(
            names = "--topology",
            paramLabel = "T",
            description =
                    "Which services there are, and who calls whom: line:n, star:n, star and tree (six services each),"
                            + " pair (clients reach the first of two services over REST), or graph:a>b,c;b>d&e (,"
                            + " calls one after the other, & at once). Default: the work's own; for messages line:5,"
                            + " with --quick "
                            + QUICK_TOPOLOGY + ".")
    private Optional<String> topology = Optional.empty();

    @Option(
            names = "--work",
            paramLabel = "W",
            defaultValue = "messages",
            description =
                    "What the services do: messages (send back what came); get, json:1k, json:5k (give a document of"
                            + " that size); lecturers-flat, lecturers-nested (read Redis, then MySQL, each service its"
                            + " own); records, photos (read and write PostgreSQL). Default: ${DEFAULT-VALUE}.")
    private String work = "";

    @Option(
            names = "--messages",
            paramLabel = "LIST",
            description =
                    "What is sent, with commas between: text:CHARACTERS, types:PROPERTIES (10, 100, 1000 or 10000), or"
                            + " what another work knows. Default: the work's own; for messages"
                            + " text:10,text:1000,types:100, with --quick " + QUICK_MESSAGES + ".")
    private Optional<String> messages = Optional.empty();

    @Option(
            names = "--clients",
            paramLabel = "LIST",
            defaultValue = "1,16",
            description =
                    "Numbers of clients, with commas between, one measured after the other. Each client sends again"
                            + " when its reply is there. Default: ${DEFAULT-VALUE}.")
    private String clients = "";

    @Option(
            names = "--quick",
            description =
                    "Two restarts and windows of 5 s: shows ratios but no verdict, which takes three restarts. With the"
                            + " default topology, message and clients REST, gRPC and RPCX take up to five minutes,"
                            + " and all technologies about twenty; with more, services may stay cold.")
    private boolean isQuick;

    @Option(
            names = "--restarts",
            paramLabel = "N",
            description =
                    "How often all services are started anew and measured. Default: 2 with --quick, else 10. A verdict"
                            + " takes 3.")
    private Optional<Integer> restarts = Optional.empty();

    @Option(names = Job.BACKEND, paramLabel = "NAME=HOST:PORT", description = Job.BACKEND_MEANS)
    private List<String> backends = List.of();

    @Option(
            names = "--limit",
            paramLabel = "MS",
            defaultValue = "1000",
            description = "A reply that takes longer is no success. Default: ${DEFAULT-VALUE} ms.")
    private int limitMs;

    @Option(
            names = "--seed",
            paramLabel = "N",
            defaultValue = "1",
            description =
                    "Draws the order of the trials and the contents of the messages; the same seed draws the same."
                            + " Default: ${DEFAULT-VALUE}.")
    private long seed;

    @Option(names = "--out", paramLabel = "DIR", description = Job.OUT_MEANS)
    private Optional<Path> out = Optional.empty();

    @Option(names = Job.OBSERVE, description = Job.OBSERVE_MEANS)
    private boolean isObserved;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Override
    public Integer call() throws InterruptedException {
        if (!runs.isEmpty()) {
            return compareStored();
        }
        Catalog catalog = Catalog.read();
        List<String> chosen = catalog.select(technologies);
        Effort effort = isQuick ? Effort.QUICK : Effort.STANDARD;
        if (limitMs < 1) {
            throw new BadInput("--limit", limitMs, "1 or more milliseconds");
        }
        WorkChoice choice = WorkChoice.of(work);
        Study study = new Study(
                "compare",
                chosen,
                List.of(Topology.parse(topology.orElse(stood(choice)))),
                choice.work(),
                each("--messages", messages.orElse(sent(choice)), MessageSpec::parse),
                each("--clients", clients, Compare::closed),
                effort,
                restarts.orElse(effort.restarts()),
                Duration.ofMillis(limitMs),
                seed,
                Limits.NONE);
        Progress progress = Progress.toTerminal();
        Lab lab = new Lab(catalog, progress, Job.backends(backends), isObserved);
        lab.check(study);
        lab.checkBackends(List.of(study));
        Path folder = Job.folder(out);
        return Job.carryOut(() -> lab.run(study, folder, Job.command(spec)), folder, progress);
    }

    private int compareStored() {
        if (runs.size() != 2
                || !spec.commandLine().getParseResult().matchedOptions().isEmpty()) {
            throw new BadInput(
                    "RUN", runs.getFirst(), "two folders of stored runs and no options, or options and no folder");
        }
        Path before = Job.stored("RUN", runs.getFirst());
        Path after = Job.stored("RUN", runs.getLast());
        RunComparison comparison = RunsCompared.read(before, after);
        RunsCompared.print(comparison, System.out);
        if (comparison.isOfSomething()) {
            return 0;
        }
        System.err.println("parley: the two runs have no figure in common that can be compared");
        return 2;
    }

    private String sent(WorkChoice choice) {
        return isQuickOfMessages(choice) ? QUICK_MESSAGES : choice.messages();
    }

    private String stood(WorkChoice choice) {
        return isQuickOfMessages(choice) ? QUICK_TOPOLOGY : choice.topology();
    }

    private boolean isQuickOfMessages(WorkChoice choice) {
        return isQuick && choice.typed().equals("messages");
    }

    private static <T> List<T> each(String option, String list, Function<String, T> parse) {
        List<T> values = new ArrayList<>();
        for (String part : list.split(",", -1)) {
            T value = parse.apply(part.strip());
            if (values.contains(value)) {
                throw new BadInput(option, part.strip() + " twice", "each once");
            }
            values.add(value);
        }
        return values;
    }

    private static Load closed(String text) {
        try {
            return new Load.Closed(Integer.parseInt(text));
        } catch (NumberFormatException e) {
            throw new BadInput("--clients", text, "whole numbers, such as 1,16");
        }
    }
}
