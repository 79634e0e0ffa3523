package dev.parley.spi;

import dev.parley.model.Technology;
import java.time.Duration;

/**
 * One technology in one variant: serves a contract and connects to services that serve it. Thread-safe. Settings that matter are fixed
 * and stand in {@link Technology#settings()}.
 */
public interface Transport {
    Technology technology();

    /** Whether it has what the contract needs, such as an interface file; one that reads records carries every contract. */
    default boolean carries(Contract contract) {
        return true;
    }

    /**
     * The work as this technology's services do it: itself, unless their handlers work on messages of the technology's
     * own rather than on the contract's records. Used where a service is both served and calls others over this
     * technology, and by its clients.
     */
    default Work work(Work work) {
        return work;
    }

    /**
     * Starts to serve, and returns when the service can be reached.
     *
     * @param service own name, such as {@code m2}
     * @param at the socket to listen on, or the name to serve at a broker
     * @throws CallException {@link CallException.Code#UNAVAILABLE} if the port is taken or the broker cannot be reached
     */
    Server serve(String service, Contract contract, Location at, Handler handler);

    /**
     * Prepares calls to one neighbour. Does not fail when the neighbour is not up yet: calls do, with
     * {@link CallException.Code#UNAVAILABLE}, until it is, and again work afterwards.
     *
     * @param caller own name: brokers need it for the reply queue
     */
    Neighbour connect(String caller, Contract contract, Location to);

    /**
     * A served contract. {@link #close} gives calls under way {@link #GRACE} to finish, and leaves no thread or socket
     * over.
     */
    interface Server extends AutoCloseable {
        /** How long calls under way may take when their server closes, the same with each technology. */
        Duration GRACE = Duration.ofSeconds(1);

        @Override
        void close();
    }
}
