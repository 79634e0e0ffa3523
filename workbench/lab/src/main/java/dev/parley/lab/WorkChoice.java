package dev.parley.lab;

import dev.parley.model.BadInput;
import dev.parley.model.MessageSpec;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * What can be typed for a work, and what it means: {@code works.list}.
 *
 * @param typed such as {@code json:1k}
 * @param work the name of the work and of its module
 * @param messages what is sent unless messages are given
 * @param topology between which services unless one is given
 */
public record WorkChoice(String typed, String work, String messages, String topology) {
    /**
     * The line of the list; or, for {@code work:size} such as {@code json:20k}, the line of the same work with that message in place of its
     * own.
     */
    public static WorkChoice of(String text) {
        String typed = text.strip();
        List<WorkChoice> all = read();
        for (WorkChoice choice : all) {
            if (choice.typed.equals(typed)) {
                return choice;
            }
        }
        int colon = typed.indexOf(':');
        if (colon > 0) {
            for (WorkChoice choice : all) {
                if (choice.typed.startsWith(typed.substring(0, colon + 1))) {
                    return new WorkChoice(
                            typed, choice.work, MessageSpec.parse(typed).toString(), choice.topology);
                }
            }
        }
        throw BadInput.oneOf("--work", text, all.stream().map(WorkChoice::typed).toList());
    }

    static List<WorkChoice> read() {
        try (InputStream list = WorkChoice.class.getResourceAsStream("works.list")) {
            if (list == null) {
                throw new LabException("works.list is missing from the lab's jar: build again");
            }
            return parse(new String(list.readAllBytes(), StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static List<WorkChoice> parse(String text) {
        List<WorkChoice> choices = new ArrayList<>();
        text.lines()
                .map(String::strip)
                .filter(line -> !line.isEmpty() && !line.startsWith("#"))
                .forEach(line -> {
                    String[] sides = line.split("=", -1);
                    // a topology may have semicolons of its own
                    String[] parts = sides[sides.length - 1].split(";", 3);
                    if (sides.length != 2 || parts.length != 3) {
                        throw new BadInput("works.list", line, "as typed = work; messages; topology");
                    }
                    choices.add(new WorkChoice(sides[0].strip(), parts[0].strip(), parts[1].strip(), parts[2].strip()));
                });
        return List.copyOf(choices);
    }
}
