package dev.parley.model;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/**
 * What is sent: a kind of message that a work knows, and its size, written {@code text:1000} or {@code types:100}. The
 * kind decides what the size counts: characters, properties or bytes. A kind without a size, such as {@code get}, has
 * size 0.
 *
 * <p>A scenario is several messages, one after the other, written {@code list>add:1000>edit>delete}; a load's user,
 * client or arrival carries out all of its steps in order. Works are asked for single steps only.
 *
 * @param then what follows in the same scenario; empty for a single message
 */
public record MessageSpec(String kind, int size, List<MessageSpec> then) {
    public MessageSpec(String kind, int size) {
        this(kind, size, List.of());
    }

    /** @throws BadInput for no steps at all */
    public static MessageSpec scenario(List<MessageSpec> steps) {
        if (steps.isEmpty()) {
            throw new BadInput("scenario", "no steps", "one or more messages");
        }
        MessageSpec first = steps.getFirst();
        return new MessageSpec(first.kind(), first.size(), steps.subList(1, steps.size()));
    }

    /** The single messages of this scenario; of a single message, itself alone. */
    public List<MessageSpec> steps() {
        List<MessageSpec> steps = new ArrayList<>();
        steps.add(new MessageSpec(kind, size));
        steps.addAll(then);
        return List.copyOf(steps);
    }

    public MessageSpec {
        if (!kind.matches("[a-z][a-z-]*")) {
            throw new BadInput("message", kind, "a kind such as text:1000 or types:100");
        }
        if (size < 0) {
            throw new BadInput("message " + kind, size, "a size of 0 or more");
        }
        then = List.copyOf(then);
        for (MessageSpec step : then) {
            if (!step.then().isEmpty()) {
                throw new BadInput("step of a scenario", step, "a single message");
            }
        }
    }

    /** Reads one message, or a scenario. */
    public static MessageSpec parse(String text) {
        return scenario(
                Arrays.stream(text.split(">", -1)).map(MessageSpec::single).toList());
    }

    private static MessageSpec single(String text) {
        int colon = text.indexOf(':');
        if (colon < 0) {
            return new MessageSpec(text.strip(), 0);
        }
        String size = text.substring(colon + 1).strip().replace("_", "");
        int scale = 1;
        if (size.endsWith("k")) {
            scale = 1000;
            size = size.substring(0, size.length() - 1);
        }
        try {
            return new MessageSpec(text.substring(0, colon).strip(), Math.multiplyExact(Integer.parseInt(size), scale));
        } catch (ArithmeticException | NumberFormatException e) {
            throw new BadInput("message", text, "kind:size with a whole number, such as text:1000");
        }
    }

    @Override
    public String toString() {
        return steps().stream()
                .map(s -> s.size() == 0 ? s.kind() : s.kind() + ":" + s.size())
                .collect(Collectors.joining(">"));
    }
}
