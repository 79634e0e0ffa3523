package dev.rpcx;

import dev.rpcx.internal.Given;
import dev.rpcx.internal.discovery.DnsQuestion;
import dev.rpcx.internal.discovery.EndpointsDns;
import dev.rpcx.internal.discovery.EndpointsFixed;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;

/**
 * Source that tells where the instances of a service are: a fixed list, DNS or a registry. It is given to
 * {@link Client#create(Class, Endpoints)}. An implementation only passes on what its registry says: the client sees to
 * it that an empty or failing registry does not empty a working list. An implementation should have value equality
 * where it can, as all have that are made here: the clients of a process make one watch for all endpoints that are
 * equal.
 */
@FunctionalInterface
public interface Endpoints {
    /**
     * Begins to tell the listener of the instances, on any thread, until the watch is closed. The method does not
     * block. It does not throw where the registry cannot be reached: it tells the listener, and tries again.
     *
     * @return handle that ends the watch, never null: {@link Client#create(Class, Endpoints)} throws otherwise
     */
    Watch watch(Listener listener);

    /** Receives the instances. Both methods return at once and may be called from any thread, one call at a time. */
    interface Listener {
        /**
         * Takes the list of all present instances. An empty list changes nothing. An instance whose weight has changed
         * keeps its connections. An instance that is named twice counts once, with the weight named first. A list is
         * taken every 200 ms at most; of those that come in between only the last one counts.
         */
        void found(List<Endpoint> all);

        /** Told when the registry could not be asked; the instances that were found before stay in force. */
        void failed(Throwable why);
    }

    /** Ends what {@link #watch} began. {@code Client.close} waits for this too, within its own longest time. */
    @FunctionalInterface
    interface Watch extends AutoCloseable {
        @Override
        void close();
    }

    /**
     * Returns endpoints of these instances and no others. A client keeps its connections to them until it closes, and
     * tries again and again to reach those that are not there. Instances that come and go need an {@code Endpoints}
     * that tells its {@link Listener} of each change, not a new {@code Endpoints} each time.
     */
    static Endpoints of(Endpoint... instances) {
        return new EndpointsFixed(Arrays.asList(Given.noneNull(instances, "instances", "one Endpoint or more")));
    }

    /**
     * Returns the addresses of a host name, all at one port, asked for again every 2 s: for a Kubernetes headless
     * service or a round-robin record. RPCX asks the hosts file and the name servers and search list of
     * {@code /etc/resolv.conf} itself, since the JDK would keep an answer for 30 s; it does not ask other sources of
     * {@code /etc/nsswitch.conf}.
     *
     * <p>Addresses of one family are taken: IPv4 addresses, or IPv6 addresses where the name has no IPv4 address. It is
     * the other way round on a host without an IPv4 address, and with {@code -Djava.net.preferIPv6Addresses=true}.
     *
     * <p>An answer by TCP may have at most 24 KiB: some 1,500 IPv4 addresses, or 870 IPv6 addresses. Of a larger answer
     * only the addresses in the datagram before it are taken; where that has none, the question counts as not answered.
     * Use {@link #srv} or a registry for such a name.
     */
    static Endpoints dns(String host, int port) {
        return new EndpointsDns(new DnsQuestion.Addresses(host, port), EndpointsDns.STANDARD_REFRESH);
    }

    /**
     * Returns the targets of an SRV record with their ports and weights, asked for again every 2 s. Only the targets of
     * the lowest priority value are taken. The name is given in full, such as {@code _greeter._tcp.example.org}.
     */
    static Endpoints srv(String name) {
        return new EndpointsDns(new DnsQuestion.Services(name), EndpointsDns.STANDARD_REFRESH);
    }

    /** As {@code dns(host, port)}, but asked for again after each {@code refresh}, of 100 ms to 1 h. */
    static Endpoints dns(String host, int port, Duration refresh) {
        return new EndpointsDns(new DnsQuestion.Addresses(host, port), refresh);
    }

    /** As {@code srv(name)}, but asked for again after each {@code refresh}, of 100 ms to 1 h. */
    static Endpoints srv(String name, Duration refresh) {
        return new EndpointsDns(new DnsQuestion.Services(name), refresh);
    }
}
