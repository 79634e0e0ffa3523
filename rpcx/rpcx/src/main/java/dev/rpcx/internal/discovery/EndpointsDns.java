package dev.rpcx.internal.discovery;

import dev.rpcx.Endpoints;
import dev.rpcx.internal.Given;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;

/**
 * Endpoints from DNS, which is asked again and again, on one of the event loops that clients share.
 *
 * @param nameServers name servers to ask; empty for those of the system
 */
public record EndpointsDns(DnsQuestion question, Duration refresh, List<InetSocketAddress> nameServers)
        implements Endpoints {
    /** Chosen so that a new instance has traffic within 5 s, half of which is for the record's own way into DNS. */
    public static final Duration STANDARD_REFRESH = Duration.ofSeconds(2);

    private static final Duration MIN_REFRESH = Duration.ofMillis(100);
    private static final Duration MAX_REFRESH = Duration.ofHours(1);

    public EndpointsDns {
        Given.time(refresh, "refresh", MIN_REFRESH, MAX_REFRESH, "100 ms to 1 h");
        nameServers = List.copyOf(nameServers);
    }

    /** Asks the system's name servers. */
    public EndpointsDns(DnsQuestion question, Duration refresh) {
        this(question, refresh, List.of());
    }

    @Override
    public Watch watch(Listener listener) {
        return new DnsWatch(this, listener).start();
    }
}
