package dev.parley.cli;

import dev.parley.analysis.RunComparison;
import dev.parley.analysis.Validity;
import dev.parley.lab.Catalog;
import dev.parley.lab.Lab;
import dev.parley.lab.WorkChoice;
import dev.parley.model.BadInput;
import dev.parley.model.Limits;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Study;
import dev.parley.model.Study.Effort;
import dev.parley.model.Target;
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
            "With --rate, --p50 to --p999 or --success it also says which technology meets that target.",
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
            "  ${ROOT-COMMAND-NAME} compare --quick",
            "  ${ROOT-COMMAND-NAME} compare --technologies rest,grpc,rpcx --messages types:100 --clients 1,16 --quick",
            "  ${ROOT-COMMAND-NAME} compare --quick --rate 200 --p99 20ms",
            "  ${ROOT-COMMAND-NAME} compare results/2026-11-21T08-15-30 results/2026-11-22T09-00-00"
        })
final class Compare implements Callable<Integer> {
    /**
     * Five services of one technology have some 45 s of code to compile on two cores, once a restart: more than five
     * minutes hold.
     */
    private static final String QUICK_TOPOLOGY = "line:2";

    /** A second message would have more to compile: a minute in six boots. */
    private static final String QUICK_MESSAGES = "types:100";

    private static final String CLIENTS = "1,16";

    /** In standard deviations of Poisson arrivals: next to no window has fewer requests than its mean less so many. */
    private static final double MARGIN = 5;

    @Parameters(
            paramLabel = "RUN",
            arity = "0..2",
            description = "The folders of two stored runs, without any option: compares the second with the first and"
                    + " measures nothing.")
    private List<Path> runs = List.of();

    @Option(
            names = "--technologies",
            paramLabel = "LIST",
            defaultValue = "rest,grpc,rpcx",
            description =
                    "Names with commas between them, as ${ROOT-COMMAND-NAME} technologies lists them; papers: what the"
                            + " papers measured; all: that and more. Neither has variants in it, such as grpc-tuned."
                            + " Default: ${DEFAULT-VALUE}.")
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
            description =
                    "Numbers of clients, with commas between, one measured after the other. Each client sends again"
                            + " when its reply is there. Default: " + CLIENTS + ", with --rate none.")
    private Optional<String> clients = Optional.empty();

    @Option(
            names = "--rate",
            paramLabel = "R",
            description =
                    "A target: requests a second, which an open load of Poisson arrivals offers in place of closed"
                            + " clients. Each technology meets the target or does not, or it is undecided.")
    private Optional<String> rate = Optional.empty();

    @Option(names = "--p50", paramLabel = "TIME", description = "A target: the median is at most this, such as 5ms.")
    private Optional<String> p50 = Optional.empty();

    @Option(names = "--p95", paramLabel = "TIME", description = "A target: the 95th percentile is at most this.")
    private Optional<String> p95 = Optional.empty();

    @Option(names = "--p99", paramLabel = "TIME", description = "A target: the 99th percentile is at most this.")
    private Optional<String> p99 = Optional.empty();

    @Option(names = "--p999", paramLabel = "TIME", description = "A target: the 99.9th percentile is at most this.")
    private Optional<String> p999 = Optional.empty();

    @Option(
            names = "--success",
            paramLabel = "SHARE",
            description = "A target: at least this share is answered rightly within --limit, such as 99.9%%.")
    private Optional<String> success = Optional.empty();

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
                    "How often all services are started anew and measured. Default: 2 with --quick, or 3 where it has a"
                            + " target; else 10. A verdict takes 3.")
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
        Study study = study(catalog);
        Progress progress = Progress.toTerminal();
        Lab lab = new Lab(catalog, progress, Job.backends(backends), isObserved);
        lab.check(study);
        lab.checkBackends(List.of(study));
        Path folder = Job.folder(out);
        return Job.carryOut(() -> lab.run(study, folder, Job.command(spec)), folder, progress);
    }

    /** What the options ask for. */
    Study study(Catalog catalog) {
        List<String> chosen = catalog.select(technologies);
        if (limitMs < 1) {
            throw new BadInput("--limit", limitMs, "1 or more milliseconds");
        }
        WorkChoice choice = WorkChoice.of(work);
        Optional<Target> target = target();
        Effort named = isQuick ? Effort.QUICK : Effort.STANDARD;
        int least = target.isPresent() ? Validity.MIN_VERDICT_RESTARTS : 1;
        int starts = restarts.orElse(Math.max(named.restarts(), least));
        Study compared = new Study(
                "compare",
                chosen,
                List.of(Topology.parse(topology.orElse(stood(choice)))),
                choice.work(),
                each("--messages", messages.orElse(sent(choice)), MessageSpec::parse),
                loads(target),
                target.map(asked -> telling(asked, named, starts)).orElse(named),
                starts,
                Duration.ofMillis(limitMs),
                seed,
                Limits.NONE);
        return target.map(compared::with).orElse(compared);
    }

    private Optional<Target> target() {
        List<Target.Condition> conditions = new ArrayList<>();
        for (Target.Figure figure : Target.Figure.values()) {
            String option = "--" + figure.key();
            typed(figure)
                    .map(text -> Target.Condition.parse(option, figure, text))
                    .ifPresent(conditions::add);
        }
        return rate.isEmpty() && conditions.isEmpty()
                ? Optional.empty()
                : Optional.of(new Target(rate.map(text -> Target.parseRate("--rate", text)), conditions));
    }

    private Optional<String> typed(Target.Figure figure) {
        return switch (figure) {
            case P50 -> p50;
            case P95 -> p95;
            case P99 -> p99;
            case P999 -> p999;
            case SUCCESS -> success;
        };
    }

    private List<Load> loads(Optional<Target> target) {
        Optional<Double> offered = target.flatMap(Target::rate);
        if (offered.isEmpty()) {
            return each("--clients", clients.orElse(CLIENTS), Compare::closed);
        }
        if (clients.isPresent()) {
            throw new BadInput(
                    "--rate",
                    rate.orElse("") + " beside --clients " + clients.get(),
                    "one of the two, since a rate is an open load and clients are a closed one");
        }
        return List.of(new Load.Open(offered.get(), Load.Arrivals.POISSON));
    }

    /** The same with windows long enough to tell the target's percentiles at its rate. */
    private static Effort telling(Target target, Effort named, int starts) {
        long wanted = target.conditions().stream()
                .mapToLong(condition -> condition.figure().metric().samplesWanted())
                .max()
                .orElse(0);
        double due = wanted + MARGIN * Math.sqrt(wanted);
        Duration window = Duration.ofSeconds(target.rate()
                .map(perSecond -> (long) Math.ceil(due / perSecond))
                .orElse(0L));
        return window.compareTo(named.window()) <= 0
                ? named
                : new Effort(
                        "own",
                        starts,
                        named.rehearsalLeast(),
                        named.rehearsal(),
                        named.warmUpLeast(),
                        named.warmUpMost(),
                        window,
                        named.openRequests());
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
