package dev.parley.lab;

import dev.parley.model.Technology;
import dev.parley.model.Technology.Style;
import dev.parley.process.Child;
import dev.parley.process.ProcessException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** What a technology says of itself, asked in a process with its own class path: the lab never loads one. */
final class Description implements AutoCloseable {
    private final String technology;
    private final Child child;
    private final List<String> lines = new ArrayList<>();

    /** Asks; several can be asked at once. */
    Description(String technology, Installation installation, Path log) {
        this.technology = technology;
        this.child = Child.java(
                "description of " + technology,
                ServiceJvm.FLAGS,
                installation.classPath(),
                ServiceJvm.SERVICE,
                List.of("describe"),
                log);
    }

    Technology answer() throws InterruptedException {
        return answers(List.of(technology)).getFirst();
    }

    /** What it has said, once it has answered: whether it can carry a work's calls. */
    boolean carries(String work) {
        boolean isMine = false;
        for (String line : lines) {
            if (line.startsWith("technology.name=")) {
                isMine = line.equals("technology.name=" + technology);
            }
            if (isMine && line.startsWith("technology.cannot." + work + "=")) {
                return false;
            }
        }
        return true;
    }

    /** Of several variants in one module, in the order asked for. */
    List<Technology> answers(List<String> names) throws InterruptedException {
        try {
            while (true) {
                Optional<String> line = child.line(Duration.ofSeconds(30));
                lines.add(
                        line.orElseThrow(() -> new LabException(technology + " did not describe itself within 30 s")));
            }
        } catch (ProcessException ended) {
            List<Technology> answers = new ArrayList<>();
            for (String name : names) {
                answers.add(parse(name, lines)
                        .orElseThrow(() -> new LabException(
                                "the module of " + name + " did not describe it: " + ended.getMessage(), ended)));
            }
            return answers;
        }
    }

    @Override
    public void close() {
        child.close();
    }

    static Optional<Technology> parse(String technology, List<String> lines) {
        Map<String, String> fields = new LinkedHashMap<>();
        Map<String, String> settings = new LinkedHashMap<>();
        List<String> components = new ArrayList<>();
        boolean isMine = false;
        for (String line : lines) {
            int equals = line.indexOf('=');
            if (equals < 0) {
                continue;
            }
            String key = line.substring(0, equals);
            String value = line.substring(equals + 1);
            if (key.equals("technology.name")) {
                isMine = value.equals(technology);
            }
            if (isMine && key.equals("component")) {
                components.add(value);
            } else if (isMine && key.startsWith("setting.")) {
                settings.put(key.substring("setting.".length()), value);
            } else if (isMine) {
                fields.put(key, value);
            }
        }
        if (!fields.containsKey("technology.name")) {
            return Optional.empty();
        }
        return Optional.of(new Technology(
                technology,
                fields.getOrDefault("technology.title", technology),
                Style.valueOf(fields.getOrDefault("technology.style", Style.SYNCHRONOUS.name())),
                Optional.ofNullable(fields.get("technology.broker")),
                components,
                fields.getOrDefault("technology.knows", ""),
                settings));
    }
}
