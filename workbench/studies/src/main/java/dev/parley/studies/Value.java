package dev.parley.studies;

import dev.parley.model.BadInput;
import dev.parley.model.Nearest;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import org.snakeyaml.engine.v2.nodes.MappingNode;
import org.snakeyaml.engine.v2.nodes.Node;
import org.snakeyaml.engine.v2.nodes.NodeTuple;
import org.snakeyaml.engine.v2.nodes.ScalarNode;
import org.snakeyaml.engine.v2.nodes.SequenceNode;

/**
 * One value of a file, with its place. Whatever cannot be read is added to the mistakes, and the reading goes on with nothing in its
 * place, so that all mistakes of a file are told at once.
 */
final class Value {
    private final String key;
    private final Node node;
    private final Mistakes mistakes;

    /** The mistakes of one file so far. */
    static final class Mistakes {
        private final String file;
        private final List<BadStudy.Mistake> all = new ArrayList<>();

        Mistakes(String file) {
            this.file = file;
        }

        void add(int line, String key, String what) {
            all.add(new BadStudy.Mistake(file, line, key, what));
        }

        int count() {
            return all.size();
        }

        List<BadStudy.Mistake> inOrder() {
            return all.stream()
                    .sorted(java.util.Comparator.comparingInt(BadStudy.Mistake::line))
                    .toList();
        }
    }

    Value(String key, Node node, Mistakes mistakes) {
        this.key = key;
        this.node = node;
        this.mistakes = mistakes;
    }

    String key() {
        return key;
    }

    int line() {
        return node.getStartMark().map(mark -> mark.getLine() + 1).orElse(1);
    }

    void wrong(String what) {
        mistakes.add(line(), key, what);
    }

    /** The mistake as a constructor of the model put it: what it names is left out where the key already says it. */
    void wrong(BadInput e) {
        String message = String.valueOf(e.getMessage());
        String name = key.substring(key.lastIndexOf('.') + 1);
        String plain = message.startsWith(": ") ? message.substring(2) : message;
        String said = plain.substring(0, Math.max(0, plain.indexOf(": ")));
        boolean isSaid = !said.isEmpty() && (said.equals(name) || singular(name).equals(said));
        wrong(isSaid ? plain.substring(said.length() + 2) : plain);
    }

    private static String singular(String name) {
        String plural = name.replaceAll("\\[[0-9]+]$", "");
        return plural.endsWith("ies")
                ? plural.substring(0, plural.length() - 3) + "y"
                : plural.substring(0, plural.length() - (plural.endsWith("s") ? 1 : 0));
    }

    boolean isMapping() {
        return node instanceof MappingNode;
    }

    boolean isSequence() {
        return node instanceof SequenceNode;
    }

    Optional<String> text(String expected) {
        if (node instanceof ScalarNode scalar && !scalar.getValue().isBlank()) {
            return Optional.of(scalar.getValue().strip());
        }
        wrong(written() + " (expected: " + expected + ")");
        return Optional.empty();
    }

    /** Reads a scalar with a parser that throws {@link BadInput}, or anything for a wrong number. */
    <T> Optional<T> read(String expected, Function<String, T> parser) {
        Optional<String> text = text(expected);
        if (text.isEmpty()) {
            return Optional.empty();
        }
        try {
            return Optional.of(parser.apply(text.get()));
        } catch (BadInput e) {
            wrong(e);
        } catch (NumberFormatException | ArithmeticException e) {
            wrong(text.get() + " (expected: " + expected + ")");
        }
        return Optional.empty();
    }

    /** The items of a list; a single value is a list of one. */
    List<Value> items(String expected) {
        if (!(node instanceof SequenceNode sequence)) {
            return List.of(this);
        }
        List<Value> items = new ArrayList<>();
        for (int i = 0; i < sequence.getValue().size(); i++) {
            items.add(new Value(key + "[" + i + "]", sequence.getValue().get(i), mistakes));
        }
        if (items.isEmpty()) {
            wrong("[] (expected: " + expected + ")");
        }
        return items;
    }

    /** The values of a mapping by key. Keys that are not {@code known} are mistakes; with none known, any key is right. */
    Map<String, Value> fields(Set<String> known) {
        Map<String, Value> fields = new LinkedHashMap<>();
        if (!(node instanceof MappingNode mapping)) {
            wrong(written() + " (expected: keys with values: "
                    + (known.isEmpty() ? "name: value" : String.join(", ", known)) + ")");
            return fields;
        }
        for (NodeTuple tuple : mapping.getValue()) {
            String name = tuple.getKeyNode() instanceof ScalarNode scalar ? scalar.getValue() : "?";
            Value keyPlace = new Value(join(name), tuple.getKeyNode(), mistakes);
            if (!known.isEmpty() && !known.contains(name)) {
                keyPlace.wrong("unknown key (" + Nearest.hint(name, known) + "expected: one of "
                        + String.join(", ", known) + ")");
            } else if (fields.putIfAbsent(name, new Value(join(name), tuple.getValueNode(), mistakes)) != null) {
                keyPlace.wrong("twice (expected: each key once)");
            }
        }
        return fields;
    }

    private String join(String name) {
        return key.isEmpty() ? name : key + "." + name;
    }

    /** As the file has it, cut short. */
    private String written() {
        return switch (node) {
            case ScalarNode scalar -> scalar.getValue().isBlank() ? "nothing" : scalar.getValue();
            case SequenceNode _ -> "a list";
            default -> "a mapping";
        };
    }
}
