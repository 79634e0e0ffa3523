package dev.rpcx.internal.discovery;

import dev.rpcx.Endpoints;
import dev.rpcx.internal.Given;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;

/**
 * Endpoints from DNS, which is asked again and again, on one of the event loops that clients share.
 *
 * @param refresh time from one question to the next if the first of the two questions has been answered: 100 ms to 1 h
 * @param nameServers name servers to ask; if empty, the system's name servers are asked
 */
public record EndpointsDns(DnsQuestion question, Duration refresh, List<InetSocketAddress> nameServers)
        implements Endpoints {
    /**
     * Default time from one question to the next. It is chosen so that a new instance has traffic within 5 s. Half of
     * these 5 s is allowed for the time until the instance's record has arrived in DNS.
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
