package dev.parley.lab;

import dev.parley.model.Limits;
import dev.parley.model.Load;
import dev.parley.model.Study;
import dev.parley.model.Topology;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * All trials of a study, in the order in which they are carried out: a block for each restart, and within it every
 * technology once on each topology. What services carry comes in an order that is drawn for each block and is the
 * same for all technologies: what a service went through before a trial is no difference between them. Technologies
 * come in a drawn order that the next block begins one place further on, so that a machine that grows slower slows
 * all of them. The same study gives the same plan.
 */
public record Plan(List<Boot> boots) {
    /**
     * Services started once, and the trials they serve.
     *
     * @param opensBlock true for the first of its block, in which the empty service is measured too
     * @param firstTrial the trial that the figures of the boot are kept with, whether or not it is still to be done
     * @param rehearsalLeast how long the services are warmed up before the first trial, however warm they are
     * @param rehearsal how long the services are warmed up at the most, before the first trial and between trials
     * @param callLimit a call without an answer has failed after this time
     */
    public record Boot(
            int block,
            boolean opensBlock,
            int firstTrial,
            String technology,
            Topology topology,
            String work,
            Duration rehearsalLeast,
            Duration rehearsal,
            Duration callLimit,
            Limits limits,
            List<TrialSpec> trials) {

        /** The same services, started anew for what is left of their trials. */
        Boot again(List<TrialSpec> left) {
            return with(opensBlock, firstTrial, rehearsal, left);
        }

        /** The same with another time for its rehearsal, but not under the least. */
        Boot rehearsing(Duration most) {
            return with(opensBlock, firstTrial, most.compareTo(rehearsalLeast) < 0 ? rehearsalLeast : most, trials);
        }

        private Boot with(boolean opens, int first, Duration rehearses, List<TrialSpec> served) {
            return new Boot(
                    block,
                    opens,
                    first,
                    technology,
                    topology,
                    work,
                    rehearsalLeast,
                    rehearses,
                    callLimit,
                    limits,
                    List.copyOf(served));
        }
    }

    // What follows is measured on two cores, and only for the estimate.

    /** A JVM with a transport answers within this time: RPCX after the least of it, REST after the most. */
    private static final TimeRange BOOT_EACH = new TimeRange(Duration.ofMillis(600), Duration.ofMillis(1_400));

    /** A technology describes itself. */
    private static final Duration DESCRIPTION = Duration.ofMillis(500);

    /** The generator's ceiling is measured before the first boot, and anew when it is too old. */
    static final Duration CEILING = Duration.ofSeconds(6);

    /** The empty service that each block begins with. */
    static final Duration EMPTY_SERVICE = Duration.ofSeconds(1);

    /** Between two trials bytes are counted, and services settle. */
    private static final Duration BETWEEN = Duration.ofMillis(200);

    /** The report, whatever it is of. */
    private static final TimeRange REPORT = new TimeRange(Duration.ofSeconds(1), Duration.ofSeconds(3));

    /** What the report takes for each trial. */
    private static final TimeRange REPORT_EACH = new TimeRange(Duration.ofMillis(20), Duration.ofMillis(100));

    /**
     * A search has at most so many tries more than doublings from its lowest rate to its highest: two of a rate that
     * misses, and two of each of four rates between it and the half of it, after which 5 % are left.
     */
    private static final int TRIES_BESIDE_DOUBLINGS = 10;

    public static Plan of(Study study) {
        Random random = new Random(study.seed());
        List<String> drawn = shuffled(study.technologies(), random);
        List<Boot> boots = new ArrayList<>();
        int id = 0;
        for (int block = 1; block <= study.restarts(); block++) {
            boolean opensBlock = true;
            for (Serving serving : shuffled(servings(study, random), random)) {
                for (String technology : rotated(drawn, block - 1)) {
                    List<TrialSpec> trials = trials(study, technology, serving, block, id);
                    boots.add(new Boot(
                            block,
                            opensBlock,
                            id,
                            technology,
                            serving.topology(),
                            study.work(),
                            study.effort().rehearsalLeast(),
                            study.effort().rehearsal(),
                            study.callLimit(),
                            study.limits(),
                            trials));
                    opensBlock = false;
                    id += trials.size();
                }
            }
        }
        return new Plan(List.copyOf(boots));
    }

    /** What the services of one boot carry, in this order: the same for each technology of a block. */
    private record Serving(Topology topology, List<Study.MessageUnderLoad> pairs) {}

    /** Messages with loads of their own come after the others. */
    private static List<Serving> servings(Study study, Random random) {
        List<Serving> servings = new ArrayList<>();
        for (Topology topology : study.topologies()) {
            List<Study.MessageUnderLoad> pairs = study.offerings().stream()
                    .flatMap(offering -> shuffled(offering.pairs(), random).stream())
                    .toList();
            if (study.isAlone()) {
                pairs.stream()
                        .collect(Collectors.groupingBy(
                                Study.MessageUnderLoad::message, LinkedHashMap::new, Collectors.toList()))
                        .values()
                        .forEach(own -> servings.add(new Serving(topology, own)));
            } else {
                servings.add(new Serving(topology, pairs));
            }
        }
        return servings;
    }

    private static List<TrialSpec> trials(Study study, String technology, Serving serving, int block, int firstId) {
        Study.Effort effort = study.effort();
        List<TrialSpec> trials = new ArrayList<>();
        for (Study.MessageUnderLoad pair : serving.pairs()) {
            TrialSpec.Window window =
                    new TrialSpec.Window(effort.warmUpLeast(), effort.warmUpMost(), effort.window(pair.load()));
            trials.add(new TrialSpec(
                    firstId + trials.size(),
                    technology,
                    serving.topology(),
                    study.work(),
                    pair.message(),
                    pair.load(),
                    block,
                    block,
                    window,
                    study.limit()));
        }
        return List.copyOf(trials);
    }

    private static <T> List<T> shuffled(List<T> all, Random random) {
        List<T> shuffled = new ArrayList<>(all);
        Collections.shuffle(shuffled, random);
        return shuffled;
    }

    /** Turns the order by so many places: over as many blocks as there are technologies, each is at each place once. */
    private static <T> List<T> rotated(List<T> all, int by) {
        List<T> rotated = new ArrayList<>(all);
        Collections.rotate(rotated, -by);
        return rotated;
    }

    /**
     * What is left to do when the trials of {@code finished} are done: boots without a trial left are not made again.
     */
    Plan without(Set<Integer> finished) {
        List<Boot> left = new ArrayList<>();
        for (Boot boot : boots) {
            List<TrialSpec> trials = boot.trials().stream()
                    .filter(trial -> !finished.contains(trial.id()))
                    .toList();
            if (!trials.isEmpty()) {
                left.add(boot.with(
                        boot.opensBlock() && !finished.contains(boot.firstTrial()),
                        boot.firstTrial(),
                        boot.rehearsal(),
                        trials));
            }
        }
        return new Plan(List.copyOf(left));
    }

    public List<TrialSpec> trials() {
        return boots.stream().flatMap(boot -> boot.trials().stream()).toList();
    }

    /**
     * How long all of it takes, from the first process to the report, but for the start of brokers and databases:
     * between rehearsals and warm-ups that end at once and those that take all of their time. A load that is over when
     * its work is done counts as one window: see {@link #isOpenEnded}.
     */
    public TimeRange estimate() {
        if (boots.isEmpty()) {
            return TimeRange.NONE;
        }
        long technologies = boots.stream().map(Boot::technology).distinct().count();
        TimeRange sum = afterBoots().plus(DESCRIPTION.multipliedBy(technologies));
        for (Boot boot : boots) {
            sum = sum.plus(estimate(boot));
        }
        return new TimeRange(withCeilings(sum.least()), withCeilings(sum.most()));
    }

    private static Duration withCeilings(Duration time) {
        return time.plus(CEILING.multipliedBy(1 + time.dividedBy(Ceiling.MAX_AGE)));
    }

    /** True where some load goes on until its work is done, or its users have gone, however long that takes. */
    public boolean isOpenEnded() {
        return trials().stream()
                .map(TrialSpec::load)
                .anyMatch(load ->
                        load instanceof Load.Burst || load instanceof Load.Rounds || load instanceof Load.Users);
    }

    /** The report. */
    TimeRange afterBoots() {
        return REPORT.plus(REPORT_EACH.times(trials().size()));
    }

    static TimeRange estimate(Boot boot) {
        TimeRange sum = aside(boot);
        for (TrialSpec trial : boot.trials()) {
            sum = sum.plus(estimate(trial));
        }
        return boot.opensBlock() ? sum.plus(EMPTY_SERVICE) : sum;
    }

    /** What a boot takes beside its trials: its services start, rehearse and settle. */
    static TimeRange aside(Boot boot) {
        return BOOT_EACH
                .times(boot.topology().nodes().size() + 2L)
                .plus(rehearsal(boot))
                .plus(BETWEEN.multipliedBy(boot.trials().size()));
    }

    /**
     * Services that are warm at once play the slices without which nothing is known; others take the time for it. Both
     * take those slices where the time is shorter.
     */
    private static TimeRange rehearsal(Boot boot) {
        if (boot.rehearsal().isZero()) {
            return TimeRange.NONE;
        }
        long played = boot.trials().stream()
                .flatMap(trial -> Stream.of(
                        new Study.MessageUnderLoad(trial.message(), new Load.Closed(Rehearsal.CLIENTS)),
                        new Study.MessageUnderLoad(trial.message(), Rehearsal.standIn(trial.load()))))
                .distinct()
                .count();
        return new TimeRange(boot.rehearsalLeast(), boot.rehearsal())
                .atLeast(TimeRange.of(Rehearsal.needed(boot.rehearsal()).multipliedBy(played)));
    }

    static TimeRange estimate(TrialSpec trial) {
        TrialSpec.Window window = trial.window();
        return new TimeRange(window.warmUpLeast(), window.warmUpMost()).plus(measured(trial));
    }

    private static TimeRange measured(TrialSpec trial) {
        if (trial.load() instanceof Load.HighestRate search) {
            long doublings = (long) Math.ceil(Math.log(search.to() / search.from()) / Math.log(2));
            return new TimeRange(
                    search.tryLength().multipliedBy(Math.min(2, doublings + 1)),
                    search.tryLength().multipliedBy(doublings + TRIES_BESIDE_DOUBLINGS));
        }
        return TimeRange.of(trial.load().ownLength().orElse(trial.window().length()));
    }
}
