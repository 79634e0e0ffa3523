package dev.rpcx;

import dev.rpcx.internal.Given;
import dev.rpcx.internal.discovery.DnsQuestion;
import dev.rpcx.internal.discovery.EndpointsDns;
import dev.rpcx.internal.discovery.EndpointsFixed;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;

/**
 * Source of the instances of a service, such as a fixed list, DNS or a registry. It is passed to
 * {@link Client#create(Class, Endpoints)}. An implementation passes on what its registry says: if the registry fails or
 * returns an empty list, the client keeps the instances that it has. All clients of a process share one watch for equal
 * endpoints, so an implementation should override {@code equals} and {@code hashCode} if it can.
 */
@FunctionalInterface
public interface Endpoints {
    /**
     * Starts to report the instances to the listener, on any thread, until the watch is closed. Does not block. If the
     * registry cannot be reached, reports the failure to the listener and tries again, instead of throwing.
     *
     * @return handle that ends the watch; must not be null
     */
    Watch watch(Listener listener);

    /**
     * Receives the instances. Any thread may call the methods, but the calls must not overlap. Neither method blocks.
     */
    interface Listener {
        /**
         * Takes the list of all instances that are there now. An empty list changes nothing. An instance whose weight
         * has changed keeps its connections. An instance that is in the list twice counts once, with the weight in its
         * first entry. Of more than 4096 instances only 4096 are used. The client applies a list at most every 200 ms,
         * and skips older lists that came in between.
         */
        void found(List<Endpoint> all);

        /** Called when the registry could not be asked. The instances that were found before stay in use. */
        void failed(Throwable why);
    }

    /**
     * Running watch. {@code close} ends the reports to the listener. {@code Client.close} waits for this {@code close},
     * but for at most 10 s.
     */
    @FunctionalInterface
    interface Watch extends AutoCloseable {
        @Override
        void close();
    }

    /**
     * Returns endpoints that have exactly these instances. A client keeps its connections to them until it closes, and
     * keeps trying to connect to instances that it cannot reach. For instances that come and go, implement an
     * {@code Endpoints} that reports each change to its {@link Listener}.
     *
     * @throws IllegalArgumentException if there is no instance
     */
    static Endpoints of(Endpoint... instances) {
        return new EndpointsFixed(Arrays.asList(Given.noneNull(instances, "instances", "one Endpoint or more")));
    }

    /**
     * Returns the addresses of a host name, all with the same port, and queries DNS again every 2 s. Use it for a
     * Kubernetes headless service or a round-robin record. RPCX reads the hosts file and {@code /etc/resolv.conf}
     * itself, since the JDK would keep an answer for 30 s. Other sources that {@code /etc/nsswitch.conf} names are not
     * used.
     *
     * <p>Only addresses of one family are used: IPv4 addresses, or IPv6 addresses if the name has no IPv4 address. On a
     * host that has no IPv4 address, and with {@code -Djava.net.preferIPv6Addresses=true}, IPv6 addresses are
     * preferred.
     *
     * <p>An answer by TCP may have at most 24 KiB: about 1,500 IPv4 addresses, or 870 IPv6 addresses. Of a larger
     * answer, only the addresses in the preceding UDP datagram are used; if there are none, the query fails. Use
     * {@link #srv} or a registry for such a name.
     *
     * @param port port of all instances: 1 to 65535
     */
    static Endpoints dns(String host, int port) {
        return new EndpointsDns(new DnsQuestion.Addresses(host, port), EndpointsDns.STANDARD_REFRESH);
    }

    /**
     * Returns the targets of the SRV records of a name, with their ports and weights, and queries DNS again every 2 s.
     * Only the targets with the lowest priority number are used.
     *
     * @param name full name, such as {@code _greeter._tcp.example.org}: the search list is not used
     */
    static Endpoints srv(String name) {
        return new EndpointsDns(new DnsQuestion.Services(name), EndpointsDns.STANDARD_REFRESH);
    }

    /**
     * Returns the same addresses as {@code dns(host, port)}, but queries DNS again after each {@code refresh}.
     *
     * @param refresh 100 ms to 1 h
     */
    static Endpoints dns(String host, int port, Duration refresh) {
        return new EndpointsDns(new DnsQuestion.Addresses(host, port), refresh);
    }

    /**
     * Returns the same targets as {@code srv(name)}, but queries DNS again after each {@code refresh}.
     *
     * @param refresh 100 ms to 1 h
     */
    static Endpoints srv(String name, Duration refresh) {
        return new EndpointsDns(new DnsQuestion.Services(name), refresh);
    }
}
