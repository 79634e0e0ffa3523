package dev.parley.backend;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/** A kind of broker or database, and how it is started on this machine. */
public interface Backend {
    /** Its name on the command line, such as {@code kafka}. */
    String name();

    /**
     * Starts one, and returns when a message has made the round trip. Blocks for seconds, longer when packages must be
     * fetched.
     *
     * @param folder the backend's own, for data, settings and logs; created if it is not there. A broker in a folder
     *     that was used before comes back with the same ports and with what the folder holds
     * @param told lines for a person, about anything that takes over two seconds
     * @throws BackendUnavailable if it cannot be had on this machine
     */
    Running start(Path folder, Consumer<String> told) throws InterruptedException;

    /**
     * The ports by which a relay can stand in front of a backend.
     *
     * @param listen where clients must find the relay; 0 for any port
     * @param target the port that it passes them on to
     */
    record RelayPorts(int listen, int target) {}

    /** A backend that is up. Closing ends all of its processes. */
    interface Running extends AutoCloseable {
        String host();

        int port();

        /** The server's version, such as {@code 3.10.8}. */
        String version();

        /** All of its processes, so that they can be measured apart; empty for a backend that somebody else runs. */
        List<ProcessHandle> processes();

        /** False once the backend has ended by itself. */
        default boolean isAlive() {
            return processes().stream().anyMatch(ProcessHandle::isAlive);
        }

        /** How a relay that counts bytes can stand before it; empty if none can. */
        default Optional<RelayPorts> relay() {
            return Optional.of(new RelayPorts(0, port()));
        }

        @Override
        void close();
    }
}
