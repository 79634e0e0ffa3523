package dev.parley.studies;

import dev.parley.model.BadInput;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * A chart that a paper prints: a metric against a number that grows from load to load, or from step to step of one.
 *
 * @param place where the paper has it
 * @param about what it shows, with what a reader must know of ours
 * @param metric one of the workbench's, or a name that {@link Paper#metrics} explains
 * @param unit of the metric
 * @param across what the number is: clients of a step, {@code threads} or {@code requests} of rounds, the {@code
 *     amount} of a load
 * @param axis the number's name on the chart, with its unit
 * @param load only loads of this short form; empty for all that have such a number
 * @param subject of the metric, such as a service; empty for the whole
 * @param panels one drawing for each value of these
 * @param lines one line for each value of these
 */
public record Curve(
        String place,
        String about,
        String metric,
        String unit,
        Across across,
        String axis,
        String load,
        String subject,
        List<String> panels,
        List<String> lines) {
    private static final Set<String> KEYS =
            Set.of("place", "about", "metric", "unit", "across", "axis", "load", "subject", "panels", "lines");

    /** What a chart can tell apart. */
    public static final Set<String> TOLD_APART =
            Set.of("technology", "topology", "message", "load", "part", "threads", "requests");

    /** The number that grows. */
    public enum Across {
        STEP,
        THREADS,
        REQUESTS,
        AMOUNT
    }

    public Curve {
        panels = List.copyOf(panels);
        lines = List.copyOf(lines);
        for (String key : panels) {
            known("panels", key);
        }
        for (String key : lines) {
            known("lines", key);
        }
    }

    private static void known(String where, String key) {
        if (!TOLD_APART.contains(key)) {
            throw BadInput.oneOf(where, key, new TreeSet<>(TOLD_APART));
        }
    }

    static Curve read(String place, Object given) {
        if (!(given instanceof Map<?, ?> map)) {
            throw new BadInput(place, given, "place, metric, unit, across, panels and lines of each");
        }
        map.keySet().forEach(key -> {
            if (!KEYS.contains(String.valueOf(key))) {
                throw BadInput.oneOf(place, String.valueOf(key), new TreeSet<>(KEYS));
            }
        });
        return new Curve(
                needed(place, map, "place"),
                text(map, "about"),
                needed(place, map, "metric"),
                needed(place, map, "unit"),
                switch (needed(place, map, "across")) {
                    case "step" -> Across.STEP;
                    case "threads" -> Across.THREADS;
                    case "requests" -> Across.REQUESTS;
                    case "amount" -> Across.AMOUNT;
                    default ->
                        throw new BadInput(
                                place + ": across", text(map, "across"), "step, threads, requests or amount");
                },
                needed(place, map, "axis"),
                text(map, "load"),
                text(map, "subject"),
                list(map.get("panels")),
                list(map.get("lines")));
    }

    private static List<String> list(@org.jspecify.annotations.Nullable Object value) {
        List<String> list = new ArrayList<>();
        if (value instanceof List<?> many) {
            many.forEach(one -> list.add(String.valueOf(one)));
        } else if (value != null) {
            list.add(String.valueOf(value));
        }
        return list;
    }

    private static String text(Map<?, ?> map, String key) {
        Object value = map.get(key);
        return value == null ? "" : String.valueOf(value).strip();
    }

    private static String needed(String place, Map<?, ?> map, String key) {
        if (text(map, key).isEmpty()) {
            throw new BadInput(place + ": " + key, "none", "a text");
        }
        return text(map, key);
    }
}
