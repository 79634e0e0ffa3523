package dev.parley.lab;

import dev.parley.model.BadInput;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The technologies there are, and the module of each: {@code technologies.list}. Immutable. */
public final class Catalog {
    private static final String BEYOND = "beyond the papers";

    private final Map<String, String> modules;
    private final Set<String> beyondPapers;

    private Catalog(Map<String, String> modules, Set<String> beyondPapers) {
        this.modules = modules;
        this.beyondPapers = beyondPapers;
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
        Set<String> beyondPapers = new HashSet<>();
        text.lines()
                .map(String::strip)
                .filter(line -> !line.isEmpty() && !line.startsWith("#"))
                .forEach(line -> {
                    String[] sides = line.split("=", -1);
                    String[] value = sides.length == 2 ? sides[1].split(",", 2) : new String[0];
                    if (value.length == 0
                            || value.length == 2 && !value[1].strip().equals(BEYOND)) {
                        throw new BadInput(
                                "technologies.list", line, "technology = module, or technology = module, " + BEYOND);
                    }
                    String name = sides[0].strip();
                    modules.put(name, value[0].strip());
                    if (value.length == 2) {
                        beyondPapers.add(name);
                    }
                });
        return new Catalog(modules, beyondPapers);
    }

    public List<String> names() {
        return List.copyOf(modules.keySet());
    }

    /** Whether none of the papers that Parley reproduces measured it. */
    public boolean isBeyondPapers(String technology) {
        module(technology);
        return beyondPapers.contains(technology);
    }

    /** Folder below {@code workbench/}. */
    String module(String technology) {
        String module = modules.get(technology);
        if (module == null) {
            throw new BadInput("technology", technology, "one of " + String.join(", ", names()));
        }
        return module;
    }

    /** One of each module, the first: the technology out of the box, without its variants. */
    private List<String> outOfTheBox() {
        Map<String, String> first = new LinkedHashMap<>();
        modules.forEach((name, module) -> first.putIfAbsent(module, name));
        return List.copyOf(first.values());
    }

    /** Reads {@code rest,grpc}, or every technology out of the box with {@code all} and {@code papers}. Each once, all known. */
    public List<String> select(String text) {
        if (text.strip().equals("all")) {
            return outOfTheBox();
        }
        if (text.strip().equals("papers")) {
            return outOfTheBox().stream().filter(name -> !isBeyondPapers(name)).toList();
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
