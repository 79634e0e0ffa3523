package dev.parley.spi;

import dev.parley.model.BadInput;
import java.nio.file.Path;
import java.util.ServiceLoader;

/**
 * Where a service writes down each call to a neighbour, when it is asked to. An implementation is on a service's class
 * path only then. Thread-safe.
 */
public interface CallLog extends AutoCloseable {
    /**
     * One call has ended.
     *
     * @param peer the neighbour's name
     * @param tookNs on the caller's clock
     * @param window what the lab calls the window in which the call ended; empty outside of any
     */
    void called(String peer, String operation, long tookNs, boolean isAnswered, String window);

    /** Writes out what is held. */
    @Override
    void close();

    /** Found with {@link ServiceLoader}. */
    interface Provider {
        /** @param file appended to; its folder exists */
        CallLog open(Path file, String service, String technology);
    }

    static CallLog open(Path file, String service, String technology) {
        return ServiceLoader.load(Provider.class)
                .findFirst()
                .orElseThrow(() -> new BadInput("log", file, "a call log on the class path: the module observed"))
                .open(file, service, technology);
    }
}
