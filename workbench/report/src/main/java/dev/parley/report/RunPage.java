package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.JudgedTrial;
import dev.parley.analysis.Situation;
import dev.parley.analysis.Validity;
import dev.parley.model.Technology;
import dev.parley.report.Palette.Mark;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * All that {@code report.html} says of a run, in the order in which it says it. The template {@code report} writes it.
 *
 * @param title the question of the run, or the title of its study
 * @param facts one line below the title
 * @param warmth which trials were not known to be warm, and what helps; empty where all were
 * @param technologies each with its mark and its title
 */
record RunPage(
        Frame frame,
        String title,
        List<String> facts,
        List<Flag> flags,
        String warmth,
        Results results,
        List<Named> technologies,
        List<Section> sections,
        AskedPage asked,
        MeasuredPage measured) {
    private static final DateTimeFormatter DAY = DateTimeFormatter.ofPattern("d MMMM yyyy, HH:mm", Locale.ENGLISH);

    /**
     * What a reader has to see before figures are believed.
     *
     * @param kind {@code hint}, {@code bad} or empty
     */
    record Flag(String kind, String text) {}

    /** A technology with its title, which stands nowhere else. */
    record Named(Mark mark, String title) {}

    /**
     * Charts of one subject.
     *
     * @param legend marks that stand beside no name in its charts
     */
    record Section(String id, String title, String lead, List<Mark> legend, List<Drawing> drawings) {}

    /** @param study title of the run's study; empty where nobody named it */
    static RunPage of(Analysis analysis, Optional<String> study) {
        List<String> names =
                analysis.run().technologies().stream().map(Technology::name).toList();
        List<Mark> marks = Palette.of(names);
        Results results = Results.of(analysis, marks);
        List<Charts.Section> sections = new Charts(analysis).sections();
        String question = Question.of(analysis.situations(), names);
        String title = study.orElse(question);
        List<String> facts = new ArrayList<>();
        if (study.isPresent()) {
            facts.add(question);
        }
        facts.addAll(facts(analysis));
        return new RunPage(
                Frame.ofCharts(
                        title,
                        ChartData.json(
                                marks,
                                Stream.concat(
                                                results.lead().stream(),
                                                sections.stream().flatMap(section -> section.charts().stream()))
                                        .toList())),
                title,
                List.copyOf(facts),
                flags(analysis),
                Warmth.note(analysis).orElse(""),
                results,
                named(analysis, marks),
                sections.stream().map(section -> section(section, marks)).toList(),
                AskedPage.of(analysis),
                MeasuredPage.of(analysis, marks));
    }

    String html() {
        return Pages.text("report", this);
    }

    /** What stands first, as it is drawn; none for a run without a plan. */
    List<Drawing> lead() {
        return results.lead().map(Drawing::of).stream().toList();
    }

    private static List<String> facts(Analysis analysis) {
        return List.of(
                String.join(
                        ", ",
                        analysis.situations().stream()
                                .map(Situation::topology)
                                .distinct()
                                .toList()),
                DAY.format(analysis.run().startedAt().atZone(ZoneOffset.UTC)) + " UTC",
                analysis.trials().size() + " of " + analysis.plan().size() + " trials");
    }

    private static List<Flag> flags(Analysis analysis) {
        List<Flag> flags = new ArrayList<>();
        boolean open = analysis.situations().stream().anyMatch(s -> s.load().isOpen());
        boolean closed = analysis.situations().stream().anyMatch(s -> !s.load().isOpen());
        flags.add(new Flag("", open && closed ? "open and closed loads" : open ? "open load" : "closed load"));
        int restarts = Circumstances.restarts(analysis);
        boolean few = restarts < Validity.ENOUGH_RESTARTS;
        boolean undecided = restarts < Validity.MIN_VERDICT_RESTARTS;
        flags.add(new Flag(
                few ? "hint" : "",
                Words.count(restarts, "restart")
                        + (undecided ? ": indicative, no verdicts" : few ? ": indicative only" : "")));
        flag(
                flags,
                "bad",
                analysis.trials().stream().filter(JudgedTrial::isVoid).count(),
                "void trial",
                "");
        flag(
                flags,
                "bad",
                analysis.trials().stream().filter(trial -> !trial.isFinished()).count(),
                "trial",
                " failed or interrupted");
        flag(flags, "bad", analysis.unfinished(), "trial", " not run");
        flag(flags, "hint", Warmth.cold(analysis), "cold trial", "");
        flag(flags, "hint", Warmth.unknown(analysis), "trial", " of unknown warmth");
        return List.copyOf(flags);
    }

    /** Adds a flag where there is something to count. */
    static void flag(List<Flag> flags, String kind, long count, String noun, String behind) {
        if (count > 0) {
            flags.add(new Flag(kind, Words.count(count, noun) + behind));
        }
    }

    private static List<Named> named(Analysis analysis, List<Mark> marks) {
        List<Named> named = new ArrayList<>();
        for (int i = 0; i < marks.size(); i++) {
            named.add(
                    new Named(marks.get(i), analysis.run().technologies().get(i).title()));
        }
        return List.copyOf(named);
    }

    private static Section section(Charts.Section section, List<Mark> marks) {
        return new Section(
                section.id(),
                section.title(),
                section.lead(),
                section.charts().stream().anyMatch(chart -> chart.kind().needsLegend()) ? marks : List.of(),
                section.charts().stream().map(Drawing::of).toList());
    }
}
