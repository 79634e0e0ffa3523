package dev.parley.work.together;

import dev.parley.model.Topology;
import dev.parley.process.Ports;
import dev.parley.spi.Contract;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import dev.parley.spi.Work;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A topology's services of one work over the real servers and clients of one technology, in this process, and a client
 * of the first.
 */
final class Services implements AutoCloseable {
    private static final AtomicInteger QUEUES = new AtomicInteger();

    private final Transport transport;
    private final Contract contract;
    private final Map<String, Location> at = new HashMap<>();
    private final Deque<Runnable> open = new ArrayDeque<>();
    private final Neighbour client;

    /** @param topology in which each service is called by its technology */
    Services(String technology, Work work, Topology topology, Map<String, Location> backends)
            throws InterruptedException {
        transport = TransportProvider.named(technology);
        contract = work.contract();
        work.prepare(topology, node -> backends);
        for (Topology.Node node : topology.calleesFirst()) {
            Map<String, Neighbour> neighbours = new LinkedHashMap<>();
            for (String callee : node.calls()) {
                neighbours.put(callee, connect(callee));
            }
            Work.Node serving = work.node(node, neighbours, backends);
            open.push(serving::close);
            at.put(node.name(), freeLocation(transport, node.name()));
            open.push(transport.serve(node.name(), contract, at.get(node.name()), serving)::close);
        }
        client = connect(topology.entry().name());
    }

    private Neighbour connect(String service) {
        Neighbour neighbour = transport.connect("client", contract, at.get(service));
        open.push(neighbour::close);
        return neighbour;
    }

    /** Where a service can be: at the broker of its technology, which is started if need be, or at a free port. */
    private static Location freeLocation(Transport transport, String service) throws InterruptedException {
        Optional<String> broker = transport.technology().broker();
        if (broker.isEmpty()) {
            return freeLocation();
        }
        RealServers.start(broker.get());
        Location.Socket at = (Location.Socket) RealServers.locations().get(broker.get());
        return new Location.AtBroker(at.host(), at.port(), "test-" + QUEUES.incrementAndGet() + "-" + service);
    }

    static Location freeLocation() {
        return new Location.Socket("127.0.0.1", Ports.free());
    }

    Neighbour client() {
        return client;
    }

    Location at(String service) {
        return at.get(service);
    }

    @Override
    public void close() {
        while (!open.isEmpty()) {
            open.pop().run();
        }
    }
}
