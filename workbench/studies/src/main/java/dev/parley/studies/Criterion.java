package dev.parley.studies;

import dev.parley.model.BadInput;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * One of the criteria by which a paper holds technologies against each other: a figure, or a fact that each technology tells of itself.
 *
 * @param name in the paper's word
 * @param shows what is shown for it
 * @param figure metric and conditions, all but the technology; empty where it is a fact
 * @param unit of the figure
 * @param fact {@code components}, {@code addresses} or {@code libraries}; empty where it is a figure
 */
public record Criterion(String name, String shows, String figure, String unit, String fact) {
    private static final Set<String> KEYS = Set.of("criterion", "shows", "figure", "unit", "fact");
    private static final Set<String> FACTS = Set.of("components", "addresses", "libraries");

    static Criterion read(String place, Object given) {
        if (!(given instanceof Map<?, ?> map)) {
            throw new BadInput(place, given, "criterion, shows, and figure and unit or fact of each");
        }
        map.keySet().forEach(key -> {
            if (!KEYS.contains(String.valueOf(key))) {
                throw BadInput.oneOf(place, String.valueOf(key), new TreeSet<>(KEYS));
            }
        });
        Criterion read = new Criterion(
                text(map, "criterion"), text(map, "shows"), text(map, "figure"), text(map, "unit"), text(map, "fact"));
        if (read.name().isEmpty() || read.figure().isEmpty() == read.fact().isEmpty()) {
            throw new BadInput(place, given, "a name, and either a figure or a fact");
        }
        if (!read.fact().isEmpty() && !FACTS.contains(read.fact())) {
            throw BadInput.oneOf(place + ": fact", read.fact(), new TreeSet<>(FACTS));
        }
        if (!read.figure().isEmpty()) {
            ExpressionParser.figure(place + ": figure", read.figure());
        }
        return read;
    }

    private static String text(Map<?, ?> map, String key) {
        Object value = map.get(key);
        return value == null ? "" : String.valueOf(value).strip();
    }
}
