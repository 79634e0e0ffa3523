package dev.parley.lab;

import dev.parley.model.BadInput;
import dev.parley.process.Packaged;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The technologies there are, and the module of each: {@code technologies.list}. Immutable. */
public final class Catalog {
    private static final String BEYOND = "beyond the papers";
    private static final String VARIANT = "a variant";

    private final Map<String, String> modules;
    private final Set<String> beyondPapers;
    /** Those that have a module of their own and are a variant all the same. */
    private final Set<String> variants;

    private Catalog(Map<String, String> modules, Set<String> beyondPapers, Set<String> variants) {
        this.modules = modules;
        this.beyondPapers = beyondPapers;
        this.variants = variants;
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
        Set<String> variants = new HashSet<>();
        text.lines()
                .map(String::strip)
                .filter(line -> !line.isEmpty() && !line.startsWith("#"))
                .forEach(line -> {
                    String[] sides = line.split("=", -1);
                    String[] value = sides.length == 2 ? sides[1].split(",", 2) : new String[0];
                    String mark = value.length == 2 ? value[1].strip() : "";
                    if (value.length == 0 || value.length == 2 && !mark.equals(BEYOND) && !mark.equals(VARIANT)) {
                        throw new BadInput(
                                "technologies.list",
                                line,
                                "technology = module, or technology = module, " + BEYOND + " or " + VARIANT);
                    }
                    String name = sides[0].strip();
                    modules.put(name, value[0].strip());
                    switch (mark) {
                        case BEYOND -> beyondPapers.add(name);
                        case VARIANT -> variants.add(name);
                        default -> {}
                    }
                });
        return new Catalog(modules, beyondPapers, variants);
    }

    public List<String> names() {
        return List.copyOf(modules.keySet());
    }

    /** Technologies whose modules are not packaged here. */
    public List<String> unbuilt() {
        Path home = Installations.home();
        return names().stream()
                .filter(name -> !Packaged.isHere(home, module(name)))
                .toList();
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
            throw BadInput.oneOf("technology", technology, names());
        }
        return module;
    }

    /** One of each module, the first: the technology out of the box, without its variants. */
    private List<String> outOfTheBox() {
        Map<String, String> first = new LinkedHashMap<>();
        modules.forEach((name, module) -> first.putIfAbsent(module, name));
        return first.values().stream().filter(name -> !variants.contains(name)).toList();
    }

    /**
     * Reads {@code rest,grpc}, or every technology out of the box with {@code all} and {@code papers}. Each once, all
     * known.
     */
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
