package dev.parley.studies;

import dev.parley.model.BadInput;
import dev.parley.model.Load;
import dev.parley.model.Load.Arrivals;
import dev.parley.model.Load.ClientUse;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;

/** Reads one load of a file: its written form on one line, or its name with its parts by name. */
final class LoadValue {
    /** Each kind of load with its parts; those marked with a question mark may be left out. */
    static final Map<String, List<String>> PARTS = parts();

    private static final String EXPECTED =
            "one of " + String.join(", ", PARTS.keySet()) + ", or in short " + Load.FORMS;

    private final Map<String, Value> fields;
    private boolean isWhole = true;

    private LoadValue(Map<String, Value> fields) {
        this.fields = fields;
    }

    private static Map<String, List<String>> parts() {
        Map<String, List<String>> parts = new LinkedHashMap<>();
        parts.put("closed", List.of("clients"));
        parts.put("staircase", List.of("from", "to", "step", "every"));
        parts.put("open", List.of("per-second", "arrivals?"));
        parts.put("ramp", List.of("from", "to", "length", "arrivals?"));
        parts.put("users", List.of("from", "to?", "length", "iterations?", "arrivals?", "client?"));
        parts.put("held", List.of("from", "to?", "length", "iterations?", "client?"));
        parts.put("burst", List.of("at-once", "iterations?"));
        parts.put("rounds", List.of("threads", "requests", "rounds?", "round-limit?", "client?"));
        parts.put("grid", List.of("threads", "requests", "rounds?", "round-limit?", "client?"));
        parts.put("highest", List.of("from", "to", "percentile?", "latency", "try?"));
        return java.util.Collections.unmodifiableMap(parts);
    }

    /** None where something is wrong with it; several for a grid. */
    static List<Load> read(Value value) {
        if (!value.isMapping()) {
            return value.read(EXPECTED, Load::parseAll).orElse(List.of());
        }
        Map<String, Value> kinds = value.fields(PARTS.keySet());
        if (kinds.size() != 1) {
            if (kinds.size() > 1) {
                value.wrong(String.join(" and ", kinds.keySet()) + " (expected: one load an item)");
            }
            return List.of();
        }
        String kind = kinds.keySet().iterator().next();
        Value place = kinds.values().iterator().next();
        Set<String> names = new LinkedHashSet<>();
        Set<String> needed = new LinkedHashSet<>();
        for (String part : PARTS.getOrDefault(kind, List.of())) {
            String name = part.replace("?", "");
            names.add(name);
            if (name.equals(part)) {
                needed.add(name);
            }
        }
        Map<String, Value> fields = place.fields(names);
        boolean isWhole = true;
        for (String name : needed) {
            if (place.isMapping() && !fields.containsKey(name)) {
                place.wrong(name + " is missing (expected: " + String.join(", ", PARTS.getOrDefault(kind, List.of()))
                        + ")");
                isWhole = false;
            }
        }
        if (!isWhole || !place.isMapping()) {
            return List.of();
        }
        try {
            return new LoadValue(fields).of(kind);
        } catch (BadInput e) {
            place.wrong(e);
            return List.of();
        }
    }

    private List<Load> of(String kind) {
        return switch (kind) {
            case "closed" -> made(clients -> new Load.Closed(clients), whole("clients", 1));
            case "staircase" -> {
                int from = whole("from", 1);
                int to = whole("to", 1);
                int step = whole("step", 1);
                Duration every = duration("every", "30s");
                yield whenWhole(() -> List.of(new Load.Staircase(from, to, step, every)));
            }
            case "open" -> {
                double rate = number("per-second", 1);
                Arrivals arrivals = arrivals();
                yield whenWhole(() -> List.of(new Load.Open(rate, arrivals)));
            }
            case "ramp" -> {
                double from = number("from", 1);
                double to = number("to", 1);
                Duration length = duration("length", "60s");
                Arrivals arrivals = arrivals();
                yield whenWhole(() -> List.of(new Load.RateRamp(from, to, length, arrivals)));
            }
            case "users" -> {
                double from = number("from", 1);
                double to = number("to", from);
                Duration length = duration("length", "60s");
                int iterations = whole("iterations", 1);
                Arrivals arrivals = arrivals();
                ClientUse use = use();
                yield whenWhole(() -> List.of(new Load.Users(from, to, length, iterations, arrivals, use)));
            }
            case "held" -> {
                int from = whole("from", 1);
                int to = whole("to", from);
                Duration length = duration("length", "60s");
                int iterations = whole("iterations", 1);
                ClientUse use = use();
                yield whenWhole(() -> List.of(new Load.Held(from, to, length, iterations, use)));
            }
            case "burst" -> {
                int atOnce = whole("at-once", 1);
                int iterations = whole("iterations", 1);
                yield whenWhole(() -> List.of(new Load.Burst(atOnce, iterations)));
            }
            case "rounds" -> {
                int threads = whole("threads", 1);
                int requests = whole("requests", 1);
                int rounds = whole("rounds", 10);
                Duration limit = duration("round-limit", "600s");
                ClientUse use = use();
                yield whenWhole(() -> List.of(new Load.Rounds(threads, requests, rounds, limit, use)));
            }
            case "grid" -> {
                Load.Range threads = range("threads");
                Load.Range requests = range("requests");
                int rounds = whole("rounds", 10);
                Duration limit = duration("round-limit", "600s");
                ClientUse use = use();
                yield whenWhole(() -> new Load.Grid(threads, requests, rounds, limit, use).cells());
            }
            case "highest" -> {
                double from = number("from", 1);
                double to = number("to", 1);
                double percentile = number("percentile", 99);
                Duration latency = duration("latency", "50ms");
                Duration each = duration("try", "5s");
                yield whenWhole(() -> List.of(new Load.HighestRate(from, to, percentile, latency, each)));
            }
            default -> List.of();
        };
    }

    private List<Load> made(java.util.function.IntFunction<Load> of, int value) {
        return whenWhole(() -> List.of(of.apply(value)));
    }

    private List<Load> whenWhole(java.util.function.Supplier<List<Load>> loads) {
        return isWhole ? loads.get() : List.of();
    }

    private <T> T part(String name, T otherwise, String expected, Function<String, T> parser) {
        Value value = fields.get(name);
        if (value == null) {
            return otherwise;
        }
        Optional<T> read = value.read(expected, parser);
        isWhole &= read.isPresent();
        return read.orElse(otherwise);
    }

    private int whole(String name, int otherwise) {
        return part(name, otherwise, "a whole number", text -> Integer.parseInt(text.replace("_", "")));
    }

    private double number(String name, double otherwise) {
        return part(name, otherwise, "a number", text -> Double.parseDouble(text.replace("_", "")));
    }

    private Duration duration(String name, String otherwise) {
        return part(name, Quantity.duration(otherwise), "a time such as 30s", Quantity::duration);
    }

    private Arrivals arrivals() {
        return part("arrivals", Arrivals.EVEN, "even or poisson", text -> one(Arrivals.values(), text));
    }

    private ClientUse use() {
        return part("client", ClientUse.SHARED, "shared, per-user or per-call", text -> one(ClientUse.values(), text));
    }

    private static <E extends Enum<E>> E one(E[] values, String text) {
        for (E value : values) {
            if (value.name().toLowerCase(Locale.ROOT).replace('_', '-').equals(text)) {
                return value;
            }
        }
        throw new NumberFormatException(text);
    }

    /** {@code 10-990+100}, {@code 10}, or from, to and step by name. */
    private Load.Range range(String name) {
        Value value = fields.get(name);
        if (value != null && value.isMapping()) {
            Map<String, Value> parts = value.fields(new LinkedHashSet<>(List.of("from", "to", "step")));
            LoadValue range = new LoadValue(parts);
            int from = range.whole("from", 1);
            int to = range.whole("to", from);
            int step = range.whole("step", 1);
            isWhole &= range.isWhole;
            return range.isWhole ? new Load.Range(from, to, step) : new Load.Range(1, 1, 1);
        }
        return part(name, new Load.Range(1, 1, 1), "a range such as 10-990+100", text -> {
            String[] sides = text.split("[-+]", -1);
            int from = Integer.parseInt(sides[0]);
            if (sides.length == 1) {
                return new Load.Range(from, from, 1);
            }
            if (sides.length != 3) {
                throw new NumberFormatException(text);
            }
            return new Load.Range(from, Integer.parseInt(sides[1]), Integer.parseInt(sides[2]));
        });
    }
}
