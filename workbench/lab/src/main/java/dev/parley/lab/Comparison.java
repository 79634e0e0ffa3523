package dev.parley.lab;

import dev.parley.model.BadInput;
import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;

/**
 * What a person asks for: technologies side by side on topologies, messages and loads.
 *
 * @param restarts fresh starts of the services; under five, figures are indicative
 * @param limit a reply counts only within this time
 */
public record Comparison(
        List<String> technologies,
        List<Topology> topologies,
        String work,
        List<MessageSpec> messages,
        List<Load> loads,
        Effort effort,
        int restarts,
        Duration limit,
        long seed) {

    /**
     * How long each trial takes.
     *
     * @param rehearsal once after each boot, under more load than one client gives: most of a JVM's compiling happens there
     * @param warmUpLeast before each window, on top of the rehearsal
     */
    public record Effort(
            String name, int restarts, Duration rehearsal, Duration warmUpLeast, Duration warmUpMost, Duration window) {
        /**
         * Three technologies with four cells each fill five minutes with this: nine boots of some six seconds each, and 23 seconds of
         * rehearsal and trials in each.
         */
        public static final Effort QUICK = new Effort(
                "quick",
                3,
                Duration.ofSeconds(6),
                Duration.ofSeconds(1),
                Duration.ofMillis(1500),
                Duration.ofSeconds(3));

        public static final Effort STANDARD = new Effort(
                "standard",
                10,
                Duration.ofSeconds(30),
                Duration.ofSeconds(15),
                Duration.ofSeconds(60),
                Duration.ofSeconds(30));
    }

    public Comparison {
        technologies = each("technology", technologies);
        topologies = each("topology", topologies);
        messages = each("message", messages);
        loads = each("load", loads);
        if (restarts < 1 || restarts > 1000) {
            throw new BadInput("restarts", restarts, "1 to 1000");
        }
    }

    private static <T> List<T> each(String what, List<T> values) {
        if (values.isEmpty()) {
            throw new BadInput(what, "none", "at least one");
        }
        if (new LinkedHashSet<>(values).size() < values.size()) {
            throw new BadInput(what, values, "each once");
        }
        return List.copyOf(values);
    }
}
