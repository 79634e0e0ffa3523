package dev.rpcx.internal.discovery;

import dev.rpcx.Endpoints;
import dev.rpcx.internal.Given;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;

/**
 * Instances of a service that are found in DNS. DNS is asked at regular intervals, on an event loop that clients share.
 *
 * @param refresh time from one question to the next, 100 ms to 1 h. As long as no instance has been found, or if the
 *     last question has failed, the next question comes at most 2 s after the answer or the failure
 * @param nameServers name servers to ask; empty for the name servers of the system
 */
public record EndpointsDns(DnsQuestion question, Duration refresh, List<InetSocketAddress> nameServers)
        implements Endpoints {
    /**
     * Default time from one question to the next: 2 s. A new instance should get calls within 5 s, and the record of
     * the instance can take half of these 5 s to arrive in DNS.
     */
    public static final Duration STANDARD_REFRESH = Duration.ofSeconds(2);

    private static final Duration MIN_REFRESH = Duration.ofMillis(100);
    private static final Duration MAX_REFRESH = Duration.ofHours(1);

    public EndpointsDns {
        Given.time(refresh, "refresh", MIN_REFRESH, MAX_REFRESH, "100 ms to 1 h");
        nameServers = List.copyOf(nameServers);
    }

    /** Creates endpoints for which the name servers of the system are asked. */
    public EndpointsDns(DnsQuestion question, Duration refresh) {
        this(question, refresh, List.of());
    }

    @Override
    public Watch watch(Listener listener) {
        return new DnsWatch(this, listener).start();
    }
}
