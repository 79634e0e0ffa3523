package dev.parley.lab;

import dev.parley.model.Limits;
import dev.parley.model.Study;
import dev.parley.model.Topology;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.Set;

/**
 * All trials of a study, in the order in which they are carried out: a block for each restart, and within it every technology and
 * topology once in seeded random order, so that a machine that grows slower slows all of them. The same study gives the same plan.
 */
public record Plan(List<Boot> boots) {
    /**
     * Services started once, and the trials they serve.
     *
     * @param opensBlock true for the first of its block, in which the empty service is measured too
     * @param firstTrial the trial that the figures of the boot are kept with, whether or not it is still to be done
     * @param rehearsal how long the services are warmed up before the first trial
     */
    public record Boot(
            int block,
            boolean opensBlock,
            int firstTrial,
            String technology,
            Topology topology,
            String work,
            Duration rehearsal,
            Limits limits,
            List<TrialSpec> trials) {

        /** The same services, started anew for what is left of their trials. */
        Boot again(List<TrialSpec> left) {
            return with(opensBlock, firstTrial, left);
        }

        private Boot with(boolean opens, int first, List<TrialSpec> served) {
            return new Boot(block, opens, first, technology, topology, work, rehearsal, limits, List.copyOf(served));
        }
    }

    /** Measured here: a JVM with a transport answers within this time on two cores. Only for the estimate. */
    private static final Duration BOOT_EACH = Duration.ofMillis(900);

    public static Plan of(Study study) {
        Random random = new Random(study.seed());
        List<Boot> boots = new ArrayList<>();
        int id = 0;
        for (int block = 1; block <= study.restarts(); block++) {
            List<Boot> order = new ArrayList<>();
            for (String technology : study.technologies()) {
                for (Topology topology : study.topologies()) {
                    order.add(new Boot(
                            block,
                            false,
                            0,
                            technology,
                            topology,
                            study.work(),
                            study.effort().rehearsal(),
                            study.limits(),
                            List.of()));
                }
            }
            Collections.shuffle(order, random);
            for (Boot boot : order) {
                List<TrialSpec> trials = trials(study, boot, id, random);
                boots.add(boot.with(boot.equals(order.getFirst()), id, trials));
                id += trials.size();
            }
        }
        return new Plan(List.copyOf(boots));
    }

    private static List<TrialSpec> trials(Study study, Boot boot, int firstId, Random random) {
        List<Study.Cell> cells = new ArrayList<>();
        for (Study.Offering offering : study.offerings()) {
            List<Study.Cell> own = new ArrayList<>(offering.cells());
            Collections.shuffle(own, random);
            cells.addAll(own);
        }
        List<TrialSpec> trials = new ArrayList<>();
        Study.Effort effort = study.effort();
        for (Study.Cell cell : cells) {
            TrialSpec.Window window = new TrialSpec.Window(
                    effort.warmUpLeast(),
                    effort.warmUpMost(),
                    cell.load().ownLength().orElse(effort.window()));
            trials.add(new TrialSpec(
                    firstId + trials.size(),
                    boot.technology(),
                    boot.topology(),
                    boot.work(),
                    cell.message(),
                    cell.load(),
                    boot.block(),
                    boot.block(),
                    window,
                    study.limit()));
        }
        return List.copyOf(trials);
    }

    /** What is left to do when the trials of {@code finished} are done: boots without a trial left are not made again. */
    Plan without(Set<Integer> finished) {
        List<Boot> left = new ArrayList<>();
        for (Boot boot : boots) {
            List<TrialSpec> trials = boot.trials().stream()
                    .filter(trial -> !finished.contains(trial.id()))
                    .toList();
            if (!trials.isEmpty()) {
                left.add(boot.with(
                        boot.opensBlock() && !finished.contains(boot.firstTrial()), boot.firstTrial(), trials));
            }
        }
        return new Plan(List.copyOf(left));
    }

    public List<TrialSpec> trials() {
        return boots.stream().flatMap(boot -> boot.trials().stream()).toList();
    }

    /**
     * Between warm-ups that end at once and warm-ups that take as long as they may: the middle. A load that is over when its work is done
     * counts as one window.
     */
    public Duration estimate() {
        Duration sum = Duration.ZERO;
        for (Boot boot : boots) {
            sum = sum.plus(estimate(boot));
        }
        return sum;
    }

    static Duration estimate(Boot boot) {
        Duration sum =
                BOOT_EACH.multipliedBy(boot.topology().nodes().size() + 2L).plus(boot.rehearsal());
        for (TrialSpec trial : boot.trials()) {
            TrialSpec.Window window = trial.window();
            sum = sum.plus(window.warmUpLeast().plus(window.warmUpMost()).dividedBy(2))
                    .plus(trial.load().ownLength().orElse(window.length()));
        }
        return sum;
    }
}
