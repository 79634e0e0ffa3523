package dev.parley.lab;

import dev.parley.model.LibraryRow;
import dev.parley.model.Technology;
import dev.parley.model.Topology;
import dev.parley.process.Children;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What technologies ask of a system, from their own description and the files that a service of theirs runs from. Measures nothing. */
public final class Inventory {
    private static final String WORK = "messages";

    private final Catalog catalog;
    private final Installations installations;

    /**
     * One technology.
     *
     * @param isBeyondPapers whether none of the papers that Parley reproduces measured it
     * @param libraries every file on the class path of a service that serves and calls over it, largest first
     */
    public record Entry(Technology technology, boolean isBeyondPapers, List<LibraryRow> libraries) {
        public long bytes() {
            return libraries.stream().mapToLong(LibraryRow::bytes).sum();
        }
    }

    public Inventory(Catalog catalog) {
        this.catalog = catalog;
        this.installations = new Installations(Installations.home(), catalog);
    }

    /** Lists every module that a process is started from, by its folder below {@code workbench/}. */
    public static Set<String> modules(Catalog catalog) {
        return Installations.modules(catalog);
    }

    /** Names a jar's licence as {@link LibraryRow#licence} does. */
    public static String licence(Path jar) {
        return Licence.of(jar);
    }

    /**
     * Asks a process of each module at once; blocks until all have answered.
     *
     * @throws dev.parley.model.BadInput if there is no such technology
     * @throws LabException if a module is not built or does not describe itself
     */
    public List<Entry> of(List<String> technologies) throws InterruptedException {
        Map<String, List<String>> byModule = new LinkedHashMap<>();
        technologies.forEach(name -> byModule.computeIfAbsent(catalog.module(name), module -> new ArrayList<>())
                .add(name));
        Map<String, Entry> entries = new HashMap<>();
        try (Children.Hold _ = Children.hold();
                Folders.Temporary logs = Folders.temporary("parley-technologies")) {
            // one after the other: a module's JVM takes a core for half a second
            for (List<String> names : byModule.values()) {
                Installation installation = installation(names.getFirst());
                try (Description description = new Description(
                        names.getFirst(), installation, logs.path().resolve(names.getFirst() + ".log"))) {
                    for (Technology technology : description.answers(names)) {
                        entries.put(technology.name(), entry(technology, installation));
                    }
                }
            }
        }
        return technologies.stream()
                .map(name -> java.util.Objects.requireNonNull(entries.get(name)))
                .toList();
    }

    private Entry entry(Technology technology, Installation installation) {
        return new Entry(
                technology,
                catalog.isBeyondPapers(technology.name()),
                installation.libraries(technology.name()).stream()
                        .sorted(java.util.Comparator.comparingLong(LibraryRow::bytes)
                                .reversed()
                                .thenComparing(LibraryRow::name))
                        .toList());
    }

    private Installation installation(String technology) {
        Topology line = Topology.line(2);
        return installations.service(technology, line, line.nodes().getLast(), WORK);
    }
}
