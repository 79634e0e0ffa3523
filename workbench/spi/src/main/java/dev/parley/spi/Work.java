package dev.parley.spi;

import dev.parley.model.BadInput;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import java.util.Map;
import java.util.ServiceLoader;

/** What services do: a contract, what each node does with a request, and what a client asks and expects. Found with ServiceLoader. */
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
     * What a client asks of one service, and how it knows a right answer: the service's own, or that of the part of the topology below it.
     *
     * @param asked the entry service, as a rule
     * @param seed the same seed gives the same requests, byte for byte
     * @throws BadInput for a message that this work does not know
     */
    Exchange<?, ?> exchange(MessageSpec message, Topology topology, Topology.Node asked, long seed);

    /** One service's behaviour, with whatever it holds open. */
    interface Node extends Handler, AutoCloseable {
        @Override
        default void close() {}
    }

    /** A request and the check of its reply. Thread-safe; requests may differ by index. */
    interface Exchange<Q extends Record, R extends Record> {
        Operation<Q, R> operation();

        Q request(long index);

        /** True if this is the right answer to {@code request}: equal in every field, not only in status. */
        boolean isRight(Q request, R reply);
    }

    static Work named(String name) {
        for (Work work : ServiceLoader.load(Work.class)) {
            if (work.name().equals(name)) {
                return work;
            }
        }
        throw new BadInput("work", name, "one whose module is on the class path");
    }
}
