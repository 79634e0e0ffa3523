package dev.parley.spi;

import dev.parley.model.BadInput;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.function.Function;

/**
 * What services do: a contract, what each node does with a request, and what a client asks and expects. Found with
 * ServiceLoader.
 */
public interface Work {
    /** In lower case, such as {@code messages}; the same as its contract's. */
    String name();

    Contract contract();

    /**
     * The behaviour of one service.
     *
     * @param neighbours the services this one calls, by name, in the topology's order; empty for a leaf
     */
    Node node(Topology.Node self, Map<String, Neighbour> neighbours);

    /**
     * Whether a service calls each of its neighbours exactly once for every request that it answers, whatever it is
     * asked. The number of requests that each service gets then follows from that of the first service, and the lab
     * compares the two.
     */
    default boolean callsEachNeighbourOnce(Topology.Node self) {
        return false;
    }

    /**
     * Names of the backends that its services read and write, such as {@code mysql}; empty for a work that stores
     * nothing.
     */
    default List<String> backends() {
        return List.of();
    }

    /**
     * Whether each service has every one of the {@link #backends} to itself; otherwise all services share one of each.
     */
    default boolean hasBackendsEach() {
        return false;
    }

    /**
     * Puts into the backends what every boot of the services begins with, and takes out what the last boot left. The
     * lab calls it before the services start; no service does.
     *
     * @param backends where those of each service are; several services may have the same ones
     */
    default void prepare(Topology topology, Function<Topology.Node, Map<String, Location>> backends) {}

    /**
     * The behaviour of one service of a work with backends.
     *
     * @param backends where each of {@link #backends} is, for this service
     */
    default Node node(Topology.Node self, Map<String, Neighbour> neighbours, Map<String, Location> backends) {
        return node(self, neighbours);
    }

    /**
     * What a client asks of one service, and how it knows a right answer. The answer is the service's own, or that of
     * the services below it.
     *
     * @param asked the entry service, as a rule
     * @param seed the same seed gives the same requests, byte for byte
     * @throws BadInput for a message that this work does not know
     */
    Exchange<?, ?> exchange(MessageSpec message, Topology topology, Topology.Node asked, long seed);

    /** One service's behaviour, with the connections that it holds open. */
    interface Node extends Handler, AutoCloseable {
        /**
         * Numbers about its cache and pools, by names such as {@code cache_hits_total}; a number whose name ends in
         * {@code _total} only grows.
         */
        default Map<String, Double> figures() {
            return Map.of();
        }

        @Override
        default void close() {}
    }

    /** A request and the check of its reply. Thread-safe; requests may differ by index. */
    interface Exchange<Q extends Record, R extends Record> {
        Operation<Q, R> operation();

        /**
         * What a client does once, before its first request and before any is timed: it logs in.
         *
         * @throws CallException as the call it makes
         */
        default void enter(Neighbour service, Duration timeout) {}

        Q request(long index);

        /** True if this is the right answer to {@code request}: equal in every field, not only in status. */
        boolean isRight(Q request, R reply);
    }

    static Work named(String name) {
        List<String> there = new ArrayList<>();
        for (Work work : ServiceLoader.load(Work.class)) {
            if (work.name().equals(name)) {
                return work;
            }
            there.add(work.name());
        }
        throw BadInput.oneOf("work", name, there);
    }
}
