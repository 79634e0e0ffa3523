package dev.parley.model;

import java.time.Duration;

/**
 * One thing to measure: a technology under one topology, message and load, within one restart of its services.
 *
 * @param id place in the run's plan, from 0; trials are carried out in this order
 * @param work name of what the services do, such as {@code messages}
 * @param restart which fresh start of the services, from 1; a restart is the unit of repetition
 * @param block in which the technologies are interleaved, from 1; there is one for each restart
 * @param limit a reply counts as a success only within this time. Default 1 s: kazanavicius, section 3.2
 */
public record TrialSpec(
        int id,
        String technology,
        Topology topology,
        String work,
        MessageSpec message,
        Load load,
        int restart,
        int block,
        Window window,
        Duration limit) {

    /**
     * @param warmUpLeast at least this long, not counted
     * @param warmUpMost at most this long, however unstable latency still is
     * @param length of the measured window
     */
    public record Window(Duration warmUpLeast, Duration warmUpMost, Duration length) {
        public Window {
            if (warmUpLeast.isNegative()) {
                throw new BadInput("warm-up", warmUpLeast, "0 or more");
            }
            positive("window", length);
            if (warmUpMost.compareTo(warmUpLeast) < 0) {
                throw new BadInput("warm-up at most", warmUpMost, "not under the least, " + warmUpLeast);
            }
        }
    }

    public TrialSpec {
        if (id < 0 || restart < 1 || block < 1) {
            throw new BadInput("trial", id + "/" + restart + "/" + block, "id from 0, restart and block from 1");
        }
        positive("limit", limit);
    }

    private static void positive(String what, Duration value) {
        if (value.isNegative() || value.isZero()) {
            throw new BadInput(what, value, "longer than nothing");
        }
    }
}
