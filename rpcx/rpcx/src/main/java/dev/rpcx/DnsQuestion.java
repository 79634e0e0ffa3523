package dev.rpcx;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/** What is asked of DNS, and how its answer reads. Blocks; on the thread of {@link EndpointsDns}. */
@FunctionalInterface
interface DnsQuestion {
    List<Endpoint> ask() throws Exception;

    /** By the system's resolver, so that its hosts file and search list hold. */
    static DnsQuestion addresses(String host, int port) {
        Endpoint checked = new Endpoint(host, port);
        return () -> {
            List<Endpoint> found = new ArrayList<>();
            for (InetAddress address : InetAddress.getAllByName(checked.host())) {
                found.add(new Endpoint(address.getHostAddress(), port));
            }
            return found;
        };
    }

    /** Those of the lowest priority. Source: RFC 2782. */
    static DnsQuestion services(String name, Supplier<List<InetSocketAddress>> nameServers) {
        byte[] checked = DnsMessage.nameBytes(name);
        return () -> {
            List<Endpoint> found = new ArrayList<>();
            int lowest = Integer.MAX_VALUE;
            for (DnsMessage.Service record : DnsExchange.services(checked, nameServers.get())) {
                if (record.priority() < lowest) {
                    lowest = record.priority();
                    found.clear();
                }
                if (record.priority() == lowest
                        && record.port() > 0
                        && !record.target().isEmpty()) {
                    int weight = Math.max(1, Math.min(Endpoint.MAX_WEIGHT, record.weight()));
                    found.add(new Endpoint(record.target(), record.port(), weight));
                }
            }
            return found;
        };
    }
}
