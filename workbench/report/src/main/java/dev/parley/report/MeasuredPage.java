package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.JudgedTrial;
import dev.parley.model.Run;
import dev.parley.model.Technology;
import dev.parley.model.TrialSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** "How this was measured": all that is needed to judge or repeat the run. */
final class MeasuredPage {
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
                    + "that is then measured, until in two slices of load in a row their compilers take at most a "
                    + "tenth of their processor time and latency falls no more, or until their time for it is over.",
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

    private final Analysis analysis;
    private final Run run;

    MeasuredPage(Analysis analysis) {
        this.analysis = analysis;
        this.run = analysis.run();
    }

    String html() {
        return "<h3>The run</h3>\n" + Html.facts(runFacts()) + "<h3>The machine</h3>\n"
                + Html.facts(run.machine().entrySet().stream()
                        .map(e -> List.of(e.getKey(), e.getValue()))
                        .toList())
                + "<h3>Each technology as it was set up</h3>\n<div class=setups>" + technologies() + "</div>\n"
                + "<h3>Rules</h3>\n<ul class=rules>"
                + RULES.stream().map(r -> "<li>" + Html.escaped(r) + "</li>").collect(Collectors.joining()) + "</ul>\n"
                + trials("Void trials", "No trial was void.", JudgedTrial::isVoid)
                + trials("Cold trials", "No trial was cold.", JudgedTrial::isCold)
                + trials("Trials of unknown warmth", "Of every trial it is known.", JudgedTrial::isUnknown)
                + trials("Failed and interrupted trials", "No trial failed.", t -> !t.isFinished())
                + (analysis.unfinished() > 0
                        ? "<p>" + analysis.unfinished() + " of "
                                + analysis.plan().size()
                                + " planned trials were not run: the run was stopped before its end.</p>\n"
                        : "");
    }

    private List<List<String>> runFacts() {
        List<List<String>> facts = new ArrayList<>();
        facts.add(List.of("Command", run.command()));
        facts.add(List.of("Run", run.id()));
        facts.add(List.of("Started", run.startedAt().toString()));
        facts.add(List.of("Seed", Long.toString(run.seed())));
        facts.add(List.of("Commit", run.commit()));
        facts.add(List.of("JDK", run.jdk()));
        facts.add(List.of(
                "Flags of every service", run.jvmFlags().isEmpty() ? "none" : String.join(" ", run.jvmFlags())));
        facts.add(List.of("Work", distinct(TrialSpec::work)));
        facts.add(List.of("Topologies", distinct(s -> s.topology().text())));
        facts.add(List.of("Messages", distinct(s -> s.message().toString())));
        facts.add(List.of("Loads", distinct(s -> Charts.load(s.load()))));
        facts.add(List.of(
                "Restarts",
                Integer.toString(analysis.plan().stream()
                        .mapToInt(TrialSpec::restart)
                        .max()
                        .orElse(0))));
        facts.add(List.of(
                "Warm-up",
                distinct(s -> seconds(s.window().warmUpLeast()) + " to "
                        + seconds(s.window().warmUpMost()) + ", until stable")));
        facts.add(List.of("Warm?", Warmth.note(analysis).orElse("every trial that was not void was warm")));
        facts.add(List.of("Measured window", distinct(s -> seconds(s.window().length()))));
        facts.add(List.of("A reply counts within", distinct(s -> seconds(s.limit()))));
        return facts;
    }

    private String distinct(java.util.function.Function<TrialSpec, String> what) {
        return analysis.plan().stream().map(what).distinct().collect(Collectors.joining("; "));
    }

    private static String seconds(java.time.Duration d) {
        return Figures.exact(d.toNanos() / 1e9) + " s";
    }

    private String technologies() {
        StringBuilder html = new StringBuilder();
        for (Technology t : run.technologies()) {
            List<List<String>> facts = new ArrayList<>();
            facts.add(List.of("Style", t.style().name().toLowerCase(Locale.ROOT)));
            t.broker().ifPresent(b -> facts.add(List.of("Needs", b)));
            if (!t.components().isEmpty()) {
                facts.add(List.of("A service contains", String.join("; ", t.components())));
            }
            if (!t.knows().isEmpty()) {
                facts.add(List.of("Who knows whom", t.knows()));
            }
            t.settings().forEach((name, value) -> facts.add(List.of(name, value)));
            html.append(
                    "<article><h4><i data-technology=\"" + Html.escaped(t.name()) + "\"></i>" + Html.escaped(t.title())
                            + " <code>" + Html.escaped(t.name()) + "</code></h4>" + Html.facts(facts) + "</article>");
        }
        return html.toString();
    }

    private String trials(String heading, String none, java.util.function.Predicate<JudgedTrial> wanted) {
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
        return "<h3>" + heading + "</h3>\n"
                + (rows.isEmpty()
                        ? "<p>" + none + "</p>\n"
                        : "<div class=scroll>"
                                + Html.table(List.of("trial", "technology", "message", "load", "restart", "why"), rows)
                                + "</div>\n");
    }
}
