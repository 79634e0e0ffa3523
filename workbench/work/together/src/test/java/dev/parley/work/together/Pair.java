package dev.parley.work.together;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.Topology;
import dev.parley.process.Child;
import dev.parley.process.Packaged;
import dev.parley.process.ProcessException;
import dev.parley.protocol.Protocol;
import dev.parley.protocol.ServiceEvent;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.TransportProvider;
import dev.parley.spi.Work;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Assumptions;

/**
 * Front and back as processes of their own, as the lab starts them, each with the libraries of its technology alone:
 * the client reaches the front over REST, the front reaches the back, which stores, over the technology.
 */
final class Pair implements AutoCloseable {
    /** The service that stores. */
    static final String BACK = "m2";

    private static final Topology TOPOLOGY = Topology.parse("pair");
    private static final Duration TO_START = Duration.ofSeconds(60);

    private final Child back;
    private final Child front;
    private final Neighbour client;

    Pair(String technology, Work work) throws InterruptedException {
        work.prepare(TOPOLOGY, node -> RealServers.locations());
        Location backAt = Services.freeLocation();
        Location frontAt = Services.freeLocation();
        back = service(BACK, TOPOLOGY, work, List.of(technology), List.of("transport=" + technology, "at=" + backAt));
        front = service(
                "m1",
                TOPOLOGY,
                work,
                List.of(technology, "rest"),
                List.of(
                        "transport=rest",
                        "at=" + frontAt,
                        "neighbour-transport=" + technology,
                        "neighbour." + BACK + "=" + backAt));
        client = TransportProvider.named("rest").connect("client", work.contract(), frontAt);
    }

    /**
     * A service that listens.
     *
     * @param technologies whose modules it runs from
     * @param settings what it speaks, and with whom
     */
    static Child service(String name, Topology topology, Work work, List<String> technologies, List<String> settings)
            throws InterruptedException {
        List<String> modules = new ArrayList<>(List.of("service"));
        technologies.forEach(technology -> modules.add("transport/" + technology));
        modules.add("work/" + work.name());
        List<String> arguments =
                new ArrayList<>(List.of("name=" + name, "topology=" + topology.text(), "work=" + work.name()));
        RealServers.locations().forEach((server, at) -> arguments.add("backend." + server + "=" + at));
        arguments.addAll(settings);
        Child child = Child.java(
                name,
                List.of(
                        "-XX:TieredStopAtLevel=1",
                        "-XX:+UseSerialGC",
                        "-Xmx256m",
                        "--enable-native-access=ALL-UNNAMED",
                        "--sun-misc-unsafe-memory-access=allow"),
                classPath(modules),
                "dev.parley.service.ServiceMain",
                arguments,
                RealServers.folder().resolve(technologies.getFirst() + "-" + name + ".log"));
        child.tell(Protocol.greeting());
        assertThat(child.line(TO_START)).contains(Protocol.greeting());
        assertThat(child.line(TO_START).map(line -> Protocol.read(line, ServiceEvent.class)))
                .containsInstanceOf(ServiceEvent.Listening.class);
        return child;
    }

    private static String classPath(List<String> modules) {
        try {
            return Packaged.classPath(RealServers.HOME, modules);
        } catch (ProcessException e) {
            // mvn test instead of mvn verify
            return Assumptions.abort(e.getMessage());
        }
    }

    Neighbour client() {
        return client;
    }

    @Override
    public void close() {
        client.close();
        front.close();
        back.close();
    }
}
