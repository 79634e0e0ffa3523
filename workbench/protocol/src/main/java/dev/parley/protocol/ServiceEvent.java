package dev.parley.protocol;

import dev.parley.model.HistogramRow;
import dev.parley.model.Technology;
import java.util.List;

/** What a service tells. */
public sealed interface ServiceEvent extends Message {
    /**
     * The service serves. Told once.
     *
     * @param healthPort of this machine's loopback
     */
    record Listening(int healthPort) implements ServiceEvent {}

    /** @param rows one for each neighbour, in the topology's order */
    record Hops(List<HistogramRow> rows) implements ServiceEvent {
        public Hops {
            rows = List.copyOf(rows);
        }
    }

    /**
     * Counts of the service's work since the process began.
     *
     * @param begun requests that reached the work
     * @param answered those of them that it answered; it refused the others, or is still at them
     * @param allocatedBytes of heap, by all threads but the one that tells, whatever for
     */
    record Served(long begun, long answered, long allocatedBytes) implements ServiceEvent {
        public static final Served NOTHING = new Served(0, 0, 0);

        public Served since(Served earlier) {
            return new Served(
                    begun - earlier.begun, answered - earlier.answered, allocatedBytes - earlier.allocatedBytes);
        }
    }

    /**
     * A technology on the class path of a service that was started to describe what is there. The process ends after
     * the last one.
     *
     * @param cannot names of the works on the class path whose contracts the technology does not carry
     */
    record Described(Technology technology, List<String> cannot) implements ServiceEvent {
        public Described {
            cannot = List.copyOf(cannot);
        }
    }
}
