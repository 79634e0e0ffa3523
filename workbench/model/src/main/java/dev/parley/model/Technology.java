package dev.parley.model;

import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What a technology says of itself.
 *
 * @param name as typed on the command line, such as {@code rest} or {@code grpc-tuned}
 * @param title as printed, such as {@code HTTP REST (JSON)}
 * @param broker the backend it cannot work without, such as {@code kafka}; empty where services talk directly
 * @param components what a service must contain to use it, in the words of its documentation
 * @param knows who has to know whose address
 * @param settings wiring that matters, in a stable order: HTTP version, connections, pooling, serializer, executor,
 *     acks …
 */
public record Technology(
        String name,
        String title,
        Style style,
        Optional<String> broker,
        List<String> components,
        String knows,
        Map<String, String> settings) {

    /** Whether a caller waits for its peer, or leaves a message and is told later. */
    public enum Style {
        SYNCHRONOUS,
        ASYNCHRONOUS
    }

    public Technology {
        if (!name.matches("[a-z][a-z0-9-]*")) {
            throw new BadInput("technology name", name, "lower-case letters, digits and hyphens");
        }
        components = List.copyOf(components);
        settings = java.util.Collections.unmodifiableMap(new java.util.LinkedHashMap<>(settings));
    }

    /** How messages are written: the setting {@code serializer}. */
    public String encoding() {
        return settings.getOrDefault("serializer", "not said");
    }

    /**
     * The settings that name queues and topics which its services make or use at the broker; empty where services talk
     * directly.
     */
    public Map<String, String> queues() {
        Map<String, String> queues = new java.util.LinkedHashMap<>();
        if (broker.isPresent()) {
            settings.forEach((setting, value) -> {
                if (setting.endsWith("queue") || setting.endsWith("topic")) {
                    queues.put(setting, value);
                }
            });
        }
        return queues;
    }
}
