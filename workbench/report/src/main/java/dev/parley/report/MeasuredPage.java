package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.JudgedTrial;
import dev.parley.model.Run;
import dev.parley.model.Technology;
import dev.parley.model.TrialSpec;
import dev.parley.report.Palette.Mark;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/**
 * "How this was measured": all that is needed to judge or repeat the run.
 *
 * @param unfinished how much of the plan was not carried out; empty where all was
 */
record MeasuredPage(
        List<Fact> run,
        List<Fact> machine,
        List<Setup> setups,
        List<String> rules,
        List<Trials> trials,
        String unfinished) {
    private static final List<String> RULES = List.of(
            "A reply counts only if it is right in every field and comes within the limit. Wrong, late, "
                    + "failed and unsent requests are counted apart.",
            "Open load: response time runs from the intended send time. Closed load: each client sends "
                    + "when its last reply is in, so a slow service is asked less often; the two are never on one "
                    + "chart.",
            "A restart of the services is the unit of repetition. Figures are medians over restarts, "
                    + "never the best of them; intervals hold 95 % and come from a bootstrap over restarts, then "
                    + "seconds.",
            "Warm-up is recorded, and not counted. Services rehearse each message, at the concurrency "
                    + "that is then measured, until in three slices of load in a row, or two where slices are short, "
                    + "their compilers take at most a tenth of their processor time and latency falls no more, or "
                    + "until their time for it is over.",
            "A trial counts when compilers took at most 10 % of the services' processor time in its "
                    + "window, and the median response time fell by at most 10 % from its first half to its second."
                    + " Otherwise it is cold; where too few requests tell, its warmth is unknown. Either is kept "
                    + "and shown in grey, with no ratio and no verdict. Boot time and first call are cold by "
                    + "nature, as are the figures of a study that asks for a cold start: they are compared as such.",
            "Percentiles come from merged histograms, never from averages. The 99th wants 1 000 samples, "
                    + "the 99.9th 10 000; with fewer it is marked.",
            "Technologies run interleaved in seeded random blocks, so that a machine that slows down "
                    + "slows all of them.",
            "Two technologies differ when the interval of their ratio excludes 1, bootstrap and t-test "
                    + "are both sure after Holm's correction, and the effect is more than 5 % and more than these two "
                    + "differ from themselves. They are equivalent when two one-sided t-tests and the interval show "
                    + "that they differ by less than 5 %, and not because the machine is too noisy to tell them "
                    + "apart. Otherwise the comparison is undecided.",
            "Where trials of a technology are cold, void or failed, its figures are those of the restarts "
                    + "that are left: “3 of 5 restarts” stands beside them. Half of the restarts or fewer have no "
                    + "ratio and no verdict, and no verdict follows from fewer than three, nor where a restart "
                    + "answered nothing.",
            "A trial is void when its generator, the machine or its own rows contradict it. It is kept, "
                    + "left out of the figures, and listed below. Where every trial of a technology is void its "
                    + "figures are shown and marked void.",
            "Boot time is taken from outside: process start to first right reply. Processor time and "
                    + "memory are read from the operating system. On loopback the kernel does the receiver's part of TCP in "
                    + "the sender's context, so that one service's processor time holds work of those that it sends to."
                    + " The sum over all processes holds each part once.",
            "Wire bytes are counted on one hop in steady state, framing included, IP and TCP headers not.");

    /** One technology as it was set up. */
    record Setup(Mark mark, List<Fact> facts) {}

    /**
     * Trials of which something has to be said.
     *
     * @param none what stands in place of the table where there are none
     */
    record Trials(String heading, String none, Table table) {}

    static MeasuredPage of(Analysis analysis, List<Mark> marks) {
        return new MeasuredPage(
                runFacts(analysis),
                analysis.run().machine().entrySet().stream()
                        .map(fact -> new Fact(fact.getKey(), fact.getValue()))
                        .toList(),
                setups(analysis.run(), marks),
                RULES,
                List.of(
                        trials(analysis, "Void trials", "No trial was void.", JudgedTrial::isVoid),
                        trials(analysis, "Cold trials", "No trial was cold.", JudgedTrial::isCold),
                        trials(
                                analysis,
                                "Trials of unknown warmth",
                                "Of every trial it is known.",
                                JudgedTrial::isUnknown),
                        trials(analysis, "Failed and interrupted trials", "No trial failed.", t -> !t.isFinished())),
                analysis.unfinished() == 0
                        ? ""
                        : analysis.unfinished() + " of " + analysis.plan().size()
                                + " planned trials were not run: the run was stopped before its end.");
    }

    private static List<Fact> runFacts(Analysis analysis) {
        Run run = analysis.run();
        return List.of(
                new Fact("Command", run.command()),
                new Fact("Run", run.id()),
                new Fact("Started", run.startedAt().toString()),
                new Fact("Seed", Long.toString(run.seed())),
                new Fact("Commit", run.commit()),
                new Fact("JDK", run.jdk()),
                new Fact(
                        "Flags of every service", run.jvmFlags().isEmpty() ? "none" : String.join(" ", run.jvmFlags())),
                new Fact("Work", distinct(analysis, TrialSpec::work)),
                new Fact("Topologies", distinct(analysis, s -> s.topology().text())),
                new Fact("Messages", distinct(analysis, s -> s.message().toString())),
                new Fact("Loads", distinct(analysis, s -> Charts.load(s.load()))),
                new Fact("Restarts", Integer.toString(Circumstances.restarts(analysis))),
                new Fact(
                        "Warm-up",
                        distinct(
                                analysis,
                                s -> seconds(s.window().warmUpLeast()) + " to "
                                        + seconds(s.window().warmUpMost()) + ", until stable")),
                new Fact("Warm?", Warmth.note(analysis).orElse("every trial that was not void was warm")),
                new Fact(
                        "Measured window",
                        distinct(analysis, s -> seconds(s.window().length()))),
                new Fact("A reply counts within", distinct(analysis, s -> seconds(s.limit()))));
    }

    private static String distinct(Analysis analysis, Function<TrialSpec, String> what) {
        return analysis.plan().stream().map(what).distinct().collect(Collectors.joining("; "));
    }

    private static String seconds(Duration d) {
        return Figures.exact(d.toNanos() / 1e9) + " s";
    }

    private static List<Setup> setups(Run run, List<Mark> marks) {
        List<Setup> setups = new ArrayList<>();
        for (Mark mark : marks) {
            run.technologies().stream()
                    .filter(technology -> technology.name().equals(mark.technology()))
                    .map(technology -> new Setup(mark, facts(technology)))
                    .forEach(setups::add);
        }
        return List.copyOf(setups);
    }

    private static List<Fact> facts(Technology t) {
        List<Fact> facts = new ArrayList<>();
        facts.add(new Fact("Style", t.style().name().toLowerCase(Locale.ROOT)));
        t.broker().ifPresent(broker -> facts.add(new Fact("Needs", broker)));
        if (!t.components().isEmpty()) {
            facts.add(new Fact("A service contains", String.join("; ", t.components())));
        }
        if (!t.knows().isEmpty()) {
            facts.add(new Fact("Who knows whom", t.knows()));
        }
        t.settings().forEach((name, value) -> facts.add(new Fact(name, value)));
        return List.copyOf(facts);
    }

    private static Trials trials(Analysis analysis, String heading, String none, Predicate<JudgedTrial> wanted) {
        List<List<String>> rows = analysis.trials().stream()
                .filter(wanted)
                .map(t -> List.of(
                        "#" + (t.row().spec().id() + 1),
                        t.row().spec().technology(),
                        t.row().spec().message().toString(),
                        Charts.load(t.row().spec().load()),
                        "restart " + t.row().spec().restart(),
                        t.isFinished()
                                ? Warmth.why(t)
                                : t.row().state().name().toLowerCase(Locale.ROOT) + ": "
                                        + t.row().message()))
                .toList();
        return new Trials(
                heading,
                none,
                new Table(heading, List.of("trial", "technology", "message", "load", "restart", "why"), rows));
    }
}
