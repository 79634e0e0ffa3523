package dev.parley.lab;

import dev.parley.model.Topology;
import dev.parley.protocol.ServiceEvent.Served;
import dev.parley.spi.Work;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/**
 * Keeps count, for one boot of a topology's services, of the requests that were given up and that a service may still
 * get: what a load finds under way when it begins. One thread.
 */
final class TrafficLedger {
    private final Topology topology;
    /** Whether what every service is sent follows from what the first one is. */
    private final boolean isDetermined;

    private final boolean isOverBroker;
    private final Map<String, Long> leftOver = new HashMap<>();

    /**
     * @param isOverBroker whether the services call one another through a broker, which sends again what was not
     *     acknowledged
     */
    TrafficLedger(Topology topology, Work work, boolean isOverBroker) {
        this.topology = topology;
        this.isDetermined = topology.nodes().stream().allMatch(work::callsEachNeighbourOnce);
        this.isOverBroker = isOverBroker;
    }

    /** Requests to one service outside of any load that its caller gave up. */
    void givenUp(Topology.Node asked, int requests) {
        callsFrom(topology, asked).forEach((service, calls) -> leave(service, Math.max(0, requests) * calls));
    }

    private void leave(String service, long requests) {
        leftOver.merge(service, requests, Long::sum);
    }

    /**
     * A load is over, and every request of it had its reply or was given up.
     *
     * @param before what each service had served when the load's first request had not been sent
     * @param after the same now
     * @param sent requests of the load generator in it
     * @param answered those of them that had a reply
     */
    Traffic load(Map<String, Served> before, Map<String, Served> after, long sent, long answered) {
        Map<String, Long> calls = callsFrom(topology, topology.entry());
        String first = topology.entry().name();
        List<Traffic.Service> services = new ArrayList<>();
        long begunByFirst = 0;
        for (Topology.Node node : topology.nodes()) {
            String name = node.name();
            Served served = after.getOrDefault(name, Served.NOTHING).since(before.getOrDefault(name, Served.NOTHING));
            boolean isFirst = name.equals(first);
            long each = calls.getOrDefault(name, 0L);
            long left = leftOver.getOrDefault(name, 0L);
            if (isFirst) {
                begunByFirst = served.begun();
            }
            services.add(new Traffic.Service(
                    name,
                    served,
                    isFirst || isDetermined ? OptionalLong.of(each) : OptionalLong.empty(),
                    left,
                    !isOverBroker || isFirst && topology.restFront()));
            long expected = isFirst ? sent : begunByFirst * each;
            leftOver.put(name, Math.max(0, left + expected - served.begun()));
        }
        return new Traffic(sent, answered, services);
    }

    /**
     * How often each service is called for one request to {@code asked}, where each calls every neighbour of its own
     * once.
     */
    static Map<String, Long> callsFrom(Topology topology, Topology.Node asked) {
        Map<String, Long> calls = new HashMap<>();
        calls.put(asked.name(), 1L);
        for (Topology.Node caller : topology.calleesFirst().reversed()) {
            long own = calls.getOrDefault(caller.name(), 0L);
            caller.calls().forEach(callee -> calls.merge(callee, own, Long::sum));
        }
        return calls;
    }
}
