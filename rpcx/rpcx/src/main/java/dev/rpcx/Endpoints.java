package dev.rpcx;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;

/**
 * Where the instances of a service are: a fixed list, DNS, a registry. Given to {@link Client#create(Class, Endpoints)}. Whoever implements
 * it tells what the registry says, no more: that an empty or failing registry does not empty a working list is the
 * client's care. Has value equality where it can, as all that are made here: the clients of a process make one watch
 * for all endpoints that are equal.
 */
@FunctionalInterface
public interface Endpoints {
    /**
     * Begins to tell the listener, on any thread, until the watch is closed. Does not block, and does not throw because the registry
     * cannot be reached: that is told to the listener, and tried again.
     *
     * @return what ends it, never null: {@link Client#create(Class, Endpoints)} throws otherwise
     */
    Watch watch(Listener listener);

    /** Told of the instances. Both methods return at once and may be called from any thread, one call at a time. */
    interface Listener {
        /**
         * All instances that are there now. An empty list changes nothing. An instance whose weight has changed keeps its
         * connections; one that is named twice is one, with the weight named first. Lists that come within 200 ms are
         * taken together: the last one counts.
         */
        void found(List<Endpoint> all);

        /** The registry could not be asked; what was found before still holds. */
        void failed(Throwable why);
    }

    /** Ends what {@link #watch} began. A client that closes waits for it, but no longer than it waits in all. */
    @FunctionalInterface
    interface Watch extends AutoCloseable {
        @Override
        void close();
    }

    /**
     * These and no others. A client keeps its connections to them until it closes, and tries again those that are not
     * there: instances that come and go need an {@code Endpoints} that tells its {@link Listener} of each change, not a
     * new one each time.
     */
    static Endpoints of(Endpoint... instances) {
        return new EndpointsFixed(Arrays.asList(Given.noneNull(instances, "instances", "one Endpoint or more")));
    }

    /**
     * Addresses of a host name, all at one port, asked for again every 2 s: a Kubernetes headless service, a
     * round-robin record. The hosts file and the name servers and search list of {@code /etc/resolv.conf} are asked,
     * not the JDK, which would keep an answer for 30 s; other sources of {@code /etc/nsswitch.conf} are not.
     *
     * <p>Addresses of one family are taken: of IPv4, or of IPv6 where the name has none of IPv4. It is the other way
     * round on a host without an IPv4 address, and with {@code -Djava.net.preferIPv6Addresses=true}.
     *
     * <p>An answer by TCP is taken that has 24 KiB at most: some 1,500 addresses of IPv4, or 870 of IPv6. Of a name
     * with more those are taken that stand in the datagram before it; where there are none it counts as not answered.
     * Use {@link #srv} or a registry there.
     */
    static Endpoints dns(String host, int port) {
        return new EndpointsDns(new DnsQuestion.Addresses(host, port), EndpointsDns.STANDARD_REFRESH);
    }

    /**
     * The targets of an SRV record, with their ports and weights, of the lowest priority that is there; asked for again every 2 s. The
     * name is the whole of it: {@code _greeter._tcp.example.org}.
     */
    static Endpoints srv(String name) {
        return new EndpointsDns(new DnsQuestion.Services(name), EndpointsDns.STANDARD_REFRESH);
    }

    /** The same, asked for again after each {@code refresh}, of 100 ms to 1 h. */
    static Endpoints dns(String host, int port, Duration refresh) {
        return new EndpointsDns(new DnsQuestion.Addresses(host, port), refresh);
    }

    /** The same, asked for again after each {@code refresh}, of 100 ms to 1 h. */
    static Endpoints srv(String name, Duration refresh) {
        return new EndpointsDns(new DnsQuestion.Services(name), refresh);
    }
}
