package dev.parley.report;

import dev.parley.analysis.Analysis;
import dev.parley.analysis.JudgedTrial;
import dev.parley.report.PaperRun.PartRun;
import java.time.Instant;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Predicate;

/**
 * One of a paper's parts: what the paper did, and how it was measured here.
 *
 * @param place where in the paper
 * @param about what it measures, and how what the paper leaves open was read
 * @param technologies those that were to be measured here; none where nothing could be
 * @param loads each of the paper's and, behind an arrow, ours where it is another
 * @param run empty where nothing was measured
 * @param why nothing was, or what differs from what was published; empty where nothing does
 */
record PaperPart(
        String name,
        String place,
        String about,
        List<String> technologies,
        List<String> loads,
        Optional<Run> run,
        String why) {
    PaperPart {
        technologies = List.copyOf(technologies);
        loads = List.copyOf(loads);
    }

    /**
     * The run of a part.
     *
     * @param machine its facts in their order
     * @param warmth what compilers took
     * @param order of the technologies
     * @param undecided why nothing of it decides anything; empty where it may
     * @param planned number of trials
     */
    record Run(
            String command,
            Instant started,
            String commit,
            String jdk,
            List<String> jvmFlags,
            Map<String, String> machine,
            long restarts,
            String warmth,
            String order,
            String undecided,
            int planned,
            Trials trials) {
        Run {
            jvmFlags = List.copyOf(jvmFlags);
            machine = Collections.unmodifiableMap(new LinkedHashMap<>(machine));
        }

        private static Run of(Analysis analysis, String undecided) {
            var run = analysis.run();
            return new Run(
                    run.command(),
                    run.startedAt(),
                    run.commit(),
                    run.jdk(),
                    run.jvmFlags(),
                    run.machine(),
                    Circumstances.restarts(analysis),
                    Circumstances.warmth(analysis),
                    Circumstances.order(analysis),
                    undecided,
                    analysis.plan().size(),
                    Trials.of(analysis));
        }
    }

    /**
     * How many trials there were.
     *
     * @param ended of whatever kind
     * @param voids those that something contradicts
     * @param unknown those whose warmth is unknown
     * @param failed those that failed or were interrupted
     */
    record Trials(int ended, int voids, int cold, int unknown, int failed) {
        static final Trials NONE = new Trials(0, 0, 0, 0, 0);

        private static Trials of(Analysis analysis) {
            return new Trials(
                    analysis.trials().size(),
                    count(analysis, JudgedTrial::isVoid),
                    count(analysis, JudgedTrial::isCold),
                    count(analysis, JudgedTrial::isUnknown),
                    count(analysis, trial -> !trial.isFinished()));
        }

        private static int count(Analysis analysis, Predicate<JudgedTrial> wanted) {
            return (int) analysis.trials().stream().filter(wanted).count();
        }

        Trials plus(Trials other) {
            return new Trials(
                    ended + other.ended,
                    voids + other.voids,
                    cold + other.cold,
                    unknown + other.unknown,
                    failed + other.failed);
        }
    }

    static PaperPart of(PartRun part) {
        return new PaperPart(
                part.part().name(),
                part.part().place(),
                part.part().about(),
                part.plan().map(plan -> plan.study().technologies()).orElse(List.of()),
                part.plan().stream()
                        .flatMap(plan -> plan.loads().entrySet().stream())
                        .map(load -> load.getKey().equals(load.getValue())
                                ? load.getKey().toString()
                                : load.getKey() + " → " + load.getValue())
                        .sorted()
                        .toList(),
                part.analysis()
                        .map(analysis -> Run.of(analysis, part.undecided().orElse(""))),
                part.why());
    }
}
