package dev.parley.lab;

import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Study;
import dev.parley.model.Topology;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/**
 * All trials of a study, in the order in which they are carried out: a block for each restart, and within it every technology and
 * topology once in seeded random order, so that a machine that grows slower slows all of them. The same study gives the same plan.
 */
public record Plan(List<Boot> boots) {
    /**
     * Services started once, and the trials they serve.
     *
     * @param rehearsal how long the services are warmed up before the first trial
     */
    public record Boot(
            int block, String technology, Topology topology, String work, Duration rehearsal, List<TrialSpec> trials) {}

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
                            technology,
                            topology,
                            study.work(),
                            study.effort().rehearsal(),
                            List.of()));
                }
            }
            Collections.shuffle(order, random);
            for (Boot boot : order) {
                List<TrialSpec> trials = trials(study, boot, id, random);
                id += trials.size();
                boots.add(new Boot(block, boot.technology(), boot.topology(), boot.work(), boot.rehearsal(), trials));
            }
        }
        return new Plan(List.copyOf(boots));
    }

    private static List<TrialSpec> trials(Study study, Boot boot, int firstId, Random random) {
        record Cell(MessageSpec message, Load load) {}
        List<Cell> cells = new ArrayList<>();
        for (MessageSpec message : study.messages()) {
            for (Load load : study.loads()) {
                cells.add(new Cell(message, load));
            }
        }
        Collections.shuffle(cells, random);
        List<TrialSpec> trials = new ArrayList<>();
        Study.Effort effort = study.effort();
        for (Cell cell : cells) {
            TrialSpec.Window window = new TrialSpec.Window(effort.warmUpLeast(), effort.warmUpMost(), cell.load().ownLength().orElse(effort.window()));
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

    public List<TrialSpec> trials() {
        return boots.stream().flatMap(boot -> boot.trials().stream()).toList();
    }

    /** Between warm-ups that end at once and warm-ups that take as long as they may: the middle. */
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
                    .plus(window.length());
        }
        return sum;
    }
}
