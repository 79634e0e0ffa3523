package dev.rpcx.internal.discovery;

import dev.rpcx.Endpoints;
import dev.rpcx.internal.Given;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;

/**
 * Endpoints from DNS, which is asked at regular intervals, on a shared event loop.
 *
 * @param refresh time from a question that has been answered to the next question: 100 ms to 1 h
 * @param nameServers name servers to ask; if empty, the system's name servers are asked
 */
public record EndpointsDns(DnsQuestion question, Duration refresh, List<InetSocketAddress> nameServers)
        implements Endpoints {
    /**
     * Default time from one question to the next: 2 s. A new instance should get calls within 5 s, half of which is
     * allowed for its record to arrive in DNS.
     */
    public static final Duration STANDARD_REFRESH = Duration.ofSeconds(2);

    private static final Duration MIN_REFRESH = Duration.ofMillis(100);
    private static final Duration MAX_REFRESH = Duration.ofHours(1);

    public EndpointsDns {
        Given.time(refresh, "refresh", MIN_REFRESH, MAX_REFRESH, "100 ms to 1 h");
        nameServers = List.copyOf(nameServers);
    }

    /** Creates endpoints that ask the name servers of the system. */
    public EndpointsDns(DnsQuestion question, Duration refresh) {
        this(question, refresh, List.of());
    }

    @Override
    public Watch watch(Listener listener) {
        return new DnsWatch(this, listener).start();
    }
}
