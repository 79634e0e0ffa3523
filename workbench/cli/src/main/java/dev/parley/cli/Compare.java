package dev.parley.cli;

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
            "Measures technologies side by side on one topology and prints a table and a report; or compares two stored runs.",
            ""
        },
        footer = {
            "",
            "Example: parley compare --technologies rest,grpc,rpcx --messages types:100 --clients 1,16 --quick"
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
                    "Two folders of stored runs, and nothing else: compares the second with the first instead of measuring.")
    private List<Path> runs = List.of();

    @Option(
            names = "--technologies",
            paramLabel = "LIST",
            defaultValue = "rest,grpc,rpcx",
            description =
                    "Comma-separated; papers: those that the papers measured, out of the box; all: those and the others, out of the box. ./parley technologies lists them with their variants. Default: ${DEFAULT-VALUE}.")
    private String technologies = "";

    @Option(
            names = "--topology",
            paramLabel = "T",
            description =
                    "line:n, star:n, star, tree (six services each), pair (clients reach the first over REST, as in"
                            + " weerasinghe), or graph:a>b,c;b>d&e (, one after the other, & at once). Default: the"
                            + " work's own; for messages line:5, with --quick "
                            + QUICK_TOPOLOGY + ": fewer services have less to compile.")
    private Optional<String> topology = Optional.empty();

    @Option(
            names = "--work",
            paramLabel = "W",
            defaultValue = "messages",
            description =
                    "What the services do: messages (echo); get, json:1k, json:5k (a document of that size behind a REST front);"
                            + " lecturers-flat, lecturers-nested (Redis before MySQL, one of each a service);"
                            + " records, photos (PostgreSQL). Default: ${DEFAULT-VALUE}.")
    private String work = "";

    @Option(
            names = "--messages",
            paramLabel = "LIST",
            description =
                    "text:CHARACTERS, types:PROPERTIES (10, 100, 1000, 10000), or another work's. Default: the work's own;"
                            + " for messages text:10,text:1000,types:100, with --quick " + QUICK_MESSAGES + ".")
    private Optional<String> messages = Optional.empty();

    @Option(
            names = "--clients",
            paramLabel = "LIST",
            defaultValue = "1,16",
            description = "Closed clients at once. Default: ${DEFAULT-VALUE}.")
    private String clients = "";

    @Option(
            names = "--quick",
            description =
                    "Two restarts and windows of 5 s: ratios without a verdict, which takes three restarts. With the"
                            + " default topology, message and clients REST, gRPC and RPCX take up to five minutes,"
                            + " and all technologies about twenty; with more, services may stay cold.")
    private boolean isQuick;

    @Option(
            names = "--restarts",
            paramLabel = "N",
            description = "Fresh starts of the services. Default: 2 with --quick, else 10.")
    private Optional<Integer> restarts = Optional.empty();

    @Option(names = Job.BACKEND, paramLabel = "NAME=HOST:PORT", description = Job.BACKEND_MEANS)
    private List<String> backends = List.of();

    @Option(
            names = "--limit",
            paramLabel = "MS",
            defaultValue = "1000",
            description = "A reply counts only within this time. Default: ${DEFAULT-VALUE} ms.")
    private int limitMs;

    @Option(
            names = "--seed",
            paramLabel = "N",
            defaultValue = "1",
            description = "Of order and messages. Default: ${DEFAULT-VALUE}.")
    private long seed;

    @Option(
            names = "--out",
            paramLabel = "DIR",
            description = "Where results go. Default: a new folder results/<date-time>/.")
    private Optional<Path> out = Optional.empty();

    @Option(names = Job.OBSERVE, description = Job.OBSERVE_MEANS)
    private boolean isObserved;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Override
    public Integer call() {
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
        RunsCompared.print(RunsCompared.read(before, after), System.out);
        return 0;
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
