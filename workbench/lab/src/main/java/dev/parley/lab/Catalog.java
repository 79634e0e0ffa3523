package dev.parley.lab;

import dev.parley.model.BadInput;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The technologies there are, and the module of each: {@code technologies.list}. Immutable. */
public final class Catalog {
    private final Map<String, String> modules;

    private Catalog(Map<String, String> modules) {
        this.modules = modules;
    }

    public static Catalog read() {
        try (InputStream list = Catalog.class.getResourceAsStream("technologies.list")) {
            if (list == null) {
                throw new LabException("technologies.list is missing from the lab's jar: build again");
            }
            return parse(new String(list.readAllBytes(), StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static Catalog parse(String text) {
        Map<String, String> modules = new LinkedHashMap<>();
        text.lines()
                .map(String::strip)
                .filter(line -> !line.isEmpty() && !line.startsWith("#"))
                .forEach(line -> {
                    String[] sides = line.split("=", -1);
                    if (sides.length != 2) {
                        throw new BadInput("technologies.list", line, "technology = module");
                    }
                    modules.put(sides[0].strip(), sides[1].strip());
                });
        return new Catalog(modules);
    }

    public List<String> names() {
        return List.copyOf(modules.keySet());
    }

    /** Folder below {@code workbench/}. */
    String module(String technology) {
        String module = modules.get(technology);
        if (module == null) {
            throw new BadInput("technology", technology, "one of " + String.join(", ", names()));
        }
        return module;
    }

    /** Reads {@code rest,grpc} or {@code all}; each once, all known. */
    public List<String> select(String text) {
        if (text.strip().equals("all")) {
            return names();
        }
        List<String> chosen = new ArrayList<>();
        for (String part : text.split(",", -1)) {
            String name = part.strip();
            module(name);
            if (chosen.contains(name)) {
                throw new BadInput("--technologies", name + " twice", "each technology once");
            }
            chosen.add(name);
        }
        return chosen;
    }
}
