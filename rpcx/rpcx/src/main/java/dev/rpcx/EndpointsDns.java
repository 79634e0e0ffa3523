package dev.rpcx;

import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Asks DNS again and again. Equal ones share one watch in the whole process, however many clients there are: it runs on an event loop of
 * theirs, from the first one's listener to the last one's end.
 *
 * @param nameServers empty for those of the system
 */
record EndpointsDns(DnsQuestion question, Duration refresh, List<InetSocketAddress> nameServers) implements Endpoints {
    /** A new instance has traffic within 5 s: half of that for the record's own way into DNS. */
    static final Duration STANDARD_REFRESH = Duration.ofSeconds(2);

    private static final Duration MIN_REFRESH = Duration.ofMillis(100);
    private static final Duration MAX_REFRESH = Duration.ofHours(1);

    /** Those with a listener. Guarded by itself. */
    private static final Map<EndpointsDns, DnsWatch> WATCHES = new HashMap<>();

    EndpointsDns {
        if (refresh.compareTo(MIN_REFRESH) < 0 || refresh.compareTo(MAX_REFRESH) > 0) {
            throw new IllegalArgumentException("refresh: " + refresh + " (expected: 100 ms to 1 h)");
        }
        nameServers = List.copyOf(nameServers);
    }

    /** Of the system's name servers. */
    EndpointsDns(DnsQuestion question, Duration refresh) {
        this(question, refresh, List.of());
    }

    @Override
    public Watch watch(Listener listener) {
        synchronized (WATCHES) {
            return WATCHES.computeIfAbsent(this, DnsWatch::new).add(listener);
        }
    }

    /** Ends the watch where this was its last listener. */
    static void removed(DnsWatch watch) {
        synchronized (WATCHES) {
            if (watch.remove()) {
                WATCHES.remove(watch.asked());
                watch.end();
            }
        }
    }

    /** Watches under way in this process. */
    static int watches() {
        synchronized (WATCHES) {
            return WATCHES.size();
        }
    }
}
