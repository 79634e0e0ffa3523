package dev.parley.spi;

import dev.parley.model.Technology;
import java.time.Duration;

/**
 * One technology in one variant: serves a contract and connects to services that serve it. Thread-safe. Settings that
 * matter are fixed and stand in {@link Technology#settings()}.
 */
public interface Transport {
    Technology technology();

    /**
     * Whether it has what the contract needs, such as an interface file. A transport that reads records themselves
     * carries every contract.
     */
    default boolean carries(Contract contract) {
        return true;
    }

    /**
     * The form of a work that this technology's services do: the work itself, unless their handlers work on messages of
     * the technology rather than on the contract's records. A service has this form where it is called and calls others
     * over this technology; so have its clients.
     */
    default Work work(Work work) {
        return work;
    }

    /**
     * Starts to serve, and returns when the service can be reached.
     *
     * @param service the service's own name, such as {@code m2}
     * @param at the socket to listen on, or the name to serve at a broker
     * @throws CallException {@link CallException.Code#UNAVAILABLE} if the port is taken or the broker cannot be reached
     */
    Server serve(String service, Contract contract, Location at, Handler handler);

    /**
     * Prepares calls to one neighbour. It succeeds even when the neighbour is not up: calls fail with
     * {@link CallException.Code#UNAVAILABLE} until the neighbour is there, and succeed from then on.
     *
     * @param caller the caller's own name: brokers need it for the reply queue
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
