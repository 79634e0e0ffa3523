package dev.parley.studies;

import java.util.Map;
import java.util.TreeMap;

/**
 * What a claim or a figure asks for: a metric under conditions, each left out where there is only one.
 *
 * @param metric one of the workbench's, or a name that {@link Paper#metrics} explains
 * @param conditions of {@code technology}, {@code topology}, {@code message}, {@code load}, {@code part}, {@code
 *     subject}
 */
public record FigureQuery(String metric, Map<String, String> conditions) {
    public FigureQuery {
        conditions = Map.copyOf(conditions);
    }

    public String condition(String key) {
        return conditions.getOrDefault(key, "");
    }

    /** These conditions, and the other's where this has none. */
    FigureQuery within(FigureQuery outer) {
        Map<String, String> all = new TreeMap<>(outer.conditions());
        all.putAll(conditions);
        return new FigureQuery(metric, all);
    }

    @Override
    public String toString() {
        return metric + new TreeMap<>(conditions).toString().replace('{', '[').replace('}', ']');
    }
}
