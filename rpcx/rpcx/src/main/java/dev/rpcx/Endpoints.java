package dev.rpcx;

import dev.rpcx.internal.Given;
import dev.rpcx.internal.discovery.DnsQuestion;
import dev.rpcx.internal.discovery.EndpointsDns;
import dev.rpcx.internal.discovery.EndpointsFixed;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;

/**
 * Names the instances of a service to a client, for example from a fixed list, DNS or a registry. The object is passed
 * to {@link Client#create(Class, Endpoints)}.
 *
 * <p>An implementation passes on what its registry says. If the registry fails or returns an empty list, the client
 * keeps the instances that it has. All clients of a process share one watch for equal endpoints, so an implementation
 * should override {@code equals} and {@code hashCode} if possible.
 */
@FunctionalInterface
public interface Endpoints {
    /**
     * Starts to report the instances to {@code listener}, until the returned watch is closed. Any thread may make the
     * reports. This method does not block. If the registry cannot be reached, this method throws nothing; the watch
     * reports the failure to the listener and tries again.
     *
     * @return handle that ends the reports; must not be null
     */
    Watch watch(Listener listener);

    /**
     * Receives the instances of a service. Any thread may call the methods, but the calls must not overlap. Neither
     * method blocks.
     */
    interface Listener {
        /**
         * Receives the list of all instances that the service has now.
         *
         * <ul>
         *   <li>An empty list changes nothing.
         *   <li>An instance whose weight has changed keeps its connections.
         *   <li>An instance that is in the list twice counts once, with the weight of the first entry.
         *   <li>Of more than 4096 instances, only 4096 are used.
         *   <li>The client applies a list at most every 200 ms. Of several lists that come within this time, only the
         *       last is applied.
         * </ul>
         */
        void found(List<Endpoint> all);

        /**
         * Receives the reason why the registry could not be asked. The instances that were found before stay in use.
         */
        void failed(Throwable why);
    }

    /**
     * Handle of a running watch: {@link #close} ends the reports to the {@link Listener}. {@link Client#close} waits
     * until this {@code close} has returned, but at most 10 s.
     */
    @FunctionalInterface
    interface Watch extends AutoCloseable {
        @Override
        void close();
    }

    /**
     * Returns endpoints that have exactly these instances. A client keeps its connections to the instances until the
     * client closes, and keeps trying to connect to instances that cannot be reached. For instances that come and go,
     * implement an {@code Endpoints} that reports each change to the {@link Listener}.
     *
     * @throws IllegalArgumentException if there is no instance
     */
    static Endpoints of(Endpoint... instances) {
        return new EndpointsFixed(Arrays.asList(Given.noneNull(instances, "instances", "one Endpoint or more")));
    }

    /**
     * Returns endpoints for all addresses of a host name, with the same port. The client queries DNS again every 2 s.
     * Use this method for a Kubernetes headless service or a round-robin record.
     *
     * <p>RPCX itself reads the hosts file and {@code /etc/resolv.conf}, since the JDK would keep an answer for 30 s.
     * Other sources that {@code /etc/nsswitch.conf} names are not used.
     *
     * <p>Only addresses of one family are used. These are the IPv4 addresses, or the IPv6 addresses if the name has no
     * IPv4 address. IPv6 addresses are preferred on a host that has no IPv4 address, and with
     * {@code -Djava.net.preferIPv6Addresses=true}.
     *
     * <p>A DNS answer by TCP is limited to 24 KiB: about 1,500 IPv4 addresses, or 870 IPv6 addresses. Of a larger
     * answer, only the addresses in the preceding UDP datagram are used. If the datagram has no addresses, the query
     * fails. Use {@link #srv} or a registry for such a name.
     *
     * @param port port of all instances: 1 to 65535
     */
    static Endpoints dns(String host, int port) {
        return new EndpointsDns(new DnsQuestion.Addresses(host, port), EndpointsDns.STANDARD_REFRESH);
    }

    /**
     * Returns endpoints for the targets of a name's SRV records, with the ports and weights of the records. Weights
     * that an {@link Endpoint} cannot have are scaled, in about the same proportions. The client queries DNS again
     * every 2 s. Only the targets with the lowest priority number are used.
     *
     * @param name full name, such as {@code _greeter._tcp.example.org}: the search list is not used
     */
    static Endpoints srv(String name) {
        return new EndpointsDns(new DnsQuestion.Services(name), EndpointsDns.STANDARD_REFRESH);
    }

    /**
     * Returns the same endpoints as {@link #dns(String, int)}, but the client queries DNS at the given interval.
     *
     * @param refresh time between two queries: 100 ms to 1 h. After a failed query, and until an instance is found, the
     *     time is at most 2 s.
     */
    static Endpoints dns(String host, int port, Duration refresh) {
        return new EndpointsDns(new DnsQuestion.Addresses(host, port), refresh);
    }

    /**
     * Returns the same endpoints as {@link #srv(String)}, but the client queries DNS at the given interval.
     *
     * @param refresh time between two queries: 100 ms to 1 h. After a failed query, and until an instance is found, the
     *     time is at most 2 s.
     */
    static Endpoints srv(String name, Duration refresh) {
        return new EndpointsDns(new DnsQuestion.Services(name), refresh);
    }
}
