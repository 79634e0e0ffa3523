package dev.parley.load;

import tools.jackson.core.JacksonException;
import tools.jackson.databind.json.JsonMapper;

/** Commands and events as lines of JSON. Thread-safe. */
public final class Protocol {
    private static final JsonMapper JSON = JsonMapper.builder().build();

    private Protocol() {}

    public static String line(Command command) {
        return JSON.writerFor(Command.class).writeValueAsString(command);
    }

    public static String line(Event event) {
        return JSON.writerFor(Event.class).writeValueAsString(event);
    }

    /** @throws IllegalArgumentException if the line is no command */
    public static Command command(String line) {
        return read(line, Command.class);
    }

    /** @throws IllegalArgumentException if the line is no event: something else wrote to the generator's standard output */
    public static Event event(String line) {
        return read(line, Event.class);
    }

    private static <T> T read(String line, Class<T> type) {
        try {
            return JSON.readValue(line, type);
        } catch (JacksonException e) {
            throw new IllegalArgumentException("no " + type.getSimpleName() + ": " + line, e);
        }
    }
}
