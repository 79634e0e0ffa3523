package dev.parley.lab;

import dev.parley.model.Study;
import dev.parley.model.Topology;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** Which modules each kind of process is made of. */
final class Installations {
    private static final String REST = "transport/rest";

    private final Path home;
    private final Catalog catalog;

    Installations(Path home, Catalog catalog) {
        this.home = home;
        this.catalog = catalog;
    }

    /** The root of the checkout or distribution, as the launcher's system property {@code parley.home} has it. */
    static Path home() {
        String home = System.getProperty("parley.home");
        if (home == null) {
            throw new LabException("the system property parley.home is not set: start with ./parley in a"
                    + " checkout, or with bin/parley in a distribution");
        }
        return Path.of(home);
    }

    /** Lists every module that a process is started from, by its folder below {@code workbench/}. */
    static Set<String> modules(Catalog catalog) {
        Set<String> modules =
                new LinkedHashSet<>(List.of("cli", "service", "load", Observation.MODULE, "backend/kafka-server"));
        catalog.names().forEach(name -> modules.add(catalog.module(name)));
        WorkChoice.read().forEach(choice -> modules.add("work/" + choice.work()));
        return modules;
    }

    Path root() {
        return home;
    }

    Installation empty() {
        return Installation.of(home, List.of("service"));
    }

    /** The load generator alone, without a technology. */
    Installation bareGenerator() {
        return Installation.of(home, List.of("load"));
    }

    /** A service that speaks {@code technology}; in front of a pair it also serves REST. */
    Installation service(String technology, Topology topology, Topology.Node node, String work) {
        List<String> modules = new ArrayList<>(List.of("service", catalog.module(technology)));
        if (topology.restFront() && node.equals(topology.entry()) && !modules.contains(REST)) {
            modules.add(REST);
        }
        modules.add("work/" + work);
        return Installation.of(home, modules);
    }

    /** The last service of a study's first topology: what is described, and what is said to be the technology's. */
    Installation leaf(String technology, Study study) {
        Topology topology = study.topologies().getFirst();
        return service(technology, topology, topology.nodes().getLast(), study.work());
    }

    Installation generator(String technology, Topology topology, String work) {
        return Installation.of(
                home, List.of("load", topology.restFront() ? REST : catalog.module(technology), "work/" + work));
    }

    /** The technology that clients speak to the entry service. */
    static String entryTechnology(String technology, Topology topology) {
        return topology.restFront() ? "rest" : technology;
    }
}
