package dev.rpcx;

import dev.rpcx.internal.Given;
import dev.rpcx.internal.discovery.DnsQuestion;
import dev.rpcx.internal.discovery.EndpointsDns;
import dev.rpcx.internal.discovery.EndpointsFixed;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;

/**
 * Source of the instances of a service: a fixed list, DNS or a registry. It is passed to
 * {@link Client#create(Class, Endpoints)}. An implementation only passes on what its registry says: if a registry
 * returns an empty list, or fails, the client itself keeps the list that it has. An implementation should override
 * {@code equals} and {@code hashCode} if it can: all clients of a process share one watch for endpoints that are equal.
 * The endpoints that the methods of this interface return override both.
 */
@FunctionalInterface
public interface Endpoints {
    /**
     * Starts to report the instances to the listener, on any thread, until the watch is closed. This method does not
     * block. If the registry cannot be reached, it does not throw: it reports the failure to the listener, and tries
     * again.
     *
     * @return handle that ends the watch. It must not be null, otherwise {@link Client#create(Class, Endpoints)}
     *     throws.
     */
    Watch watch(Listener listener);

    /**
     * Receives the instances. Any thread may call {@code found} and {@code failed}, but their calls must not overlap.
     * Both methods return without blocking.
     */
    interface Listener {
        /**
         * Takes the list of all instances that are there now. An empty list changes nothing. An instance whose weight
         * has changed keeps its connections. An instance that is in the list twice counts once, with the weight in its
         * first entry. Of a list of more than 4096 instances only 4096 are used. The client applies a list at most
         * every 200 ms; of the lists that come in between, only the last one counts.
         */
        void found(List<Endpoint> all);

        /** Called when the registry could not be asked. The instances that were found before stay in use. */
        void failed(Throwable why);
    }

    /**
     * Running watch that {@link #watch} has started. Its {@code close} ends the reports to the listener.
     * {@code Client.close} waits until this {@code close} has returned, but for at most 10 s, which is the maximum time
     * of {@code Client.close}.
     */
    @FunctionalInterface
    interface Watch extends AutoCloseable {
        @Override
        void close();
    }

    /**
     * Returns endpoints that have exactly these instances. A client keeps its connections to them until it closes, and
     * tries again and again to connect to instances that it cannot reach. For instances that come and go, implement an
     * {@code Endpoints} that reports each change to its {@link Listener}, instead of creating new {@code Endpoints}
     * each time.
     *
     * @throws IllegalArgumentException if there is no instance
     */
    static Endpoints of(Endpoint... instances) {
        return new EndpointsFixed(Arrays.asList(Given.noneNull(instances, "instances", "one Endpoint or more")));
    }

    /**
     * Returns the addresses of a host name, all with the same port, and queries DNS again every 2 s. Use it for a
     * Kubernetes headless service or a round-robin record. RPCX itself reads the hosts file, and queries the name
     * servers of {@code /etc/resolv.conf} with its search list, since the JDK would keep an answer for 30 s. RPCX does
     * not use the other sources that {@code /etc/nsswitch.conf} names.
     *
     * <p>Only addresses of one family are used: IPv4 addresses, or IPv6 addresses if the name has no IPv4 address. On a
     * host that has no IPv4 address, and with {@code -Djava.net.preferIPv6Addresses=true}, IPv6 addresses are
     * preferred, and IPv4 addresses are used if the name has no IPv6 address.
     *
     * <p>An answer by TCP may have at most 24 KiB: about 1,500 IPv4 addresses, or 870 IPv6 addresses. If an answer is
     * larger, only the addresses in the UDP datagram that came before it are used; if that datagram has none, the query
     * counts as failed. Use {@link #srv} or a registry for such a name.
     *
     * @param port port of all instances: 1 to 65535
     */
    static Endpoints dns(String host, int port) {
        return new EndpointsDns(new DnsQuestion.Addresses(host, port), EndpointsDns.STANDARD_REFRESH);
    }

    /**
     * Returns the targets of the SRV records of a name, with their ports and weights, and queries DNS again every 2 s.
     * Only the preferred targets are used: those with the lowest priority number.
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
