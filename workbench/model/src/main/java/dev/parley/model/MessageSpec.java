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
 * client or arrival sends all of them in order. Works are asked for single messages only.
 *
 * @param then what follows in the same scenario; empty for a single message
 */
public record MessageSpec(String kind, int size, List<MessageSpec> then) {
    public MessageSpec(String kind, int size) {
        this(kind, size, List.of());
    }

    /** @throws BadInput for no message at all */
    public static MessageSpec scenario(List<MessageSpec> messages) {
        if (messages.isEmpty()) {
            throw new BadInput("scenario", "no message", "one or more messages");
        }
        MessageSpec first = messages.getFirst();
        return new MessageSpec(first.kind(), first.size(), messages.subList(1, messages.size()));
    }

    /** The single messages of this scenario; of a single message, itself alone. */
    public List<MessageSpec> messages() {
        List<MessageSpec> messages = new ArrayList<>();
        messages.add(new MessageSpec(kind, size));
        messages.addAll(then);
        return List.copyOf(messages);
    }

    public MessageSpec {
        if (!kind.matches("[a-z][a-z-]*")) {
            throw new BadInput("message", kind, "a kind such as text:1000 or types:100");
        }
        if (size < 0) {
            throw new BadInput("message " + kind, size, "a size of 0 or more");
        }
        then = List.copyOf(then);
        for (MessageSpec next : then) {
            if (!next.then().isEmpty()) {
                throw new BadInput("message of a scenario", next, "a single message");
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
        return messages().stream()
                .map(s -> s.size() == 0 ? s.kind() : s.kind() + ":" + s.size())
                .collect(Collectors.joining(">"));
    }
}
