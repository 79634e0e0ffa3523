package dev.parley.model;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What services may use of the machine, on which hosts they stand, and what troubles the way between them.
 *
 * @param each what every service may use
 * @param services what single services may use, by name; what is set here takes precedence over {@code each}
 * @param hosts which services stand on which host. Where it is empty, all stand on this machine or, with a
 *     {@code bandwidth}, each on a host of its own. Clients are on the machine itself
 * @param bandwidth of each host's link, in each direction
 * @param proxy what troubles the connections to every service
 */
public record Limits(
        Share each,
        Map<String, Share> services,
        Map<String, List<String>> hosts,
        Optional<Bandwidth> bandwidth,
        Optional<Proxy> proxy) {
    public static final Limits NONE = new Limits(Share.ALL, Map.of(), Map.of(), Optional.empty(), Optional.empty());

    /** The hosts of one boot share a network 10.77.n.0/24, which has room for more. */
    public static final int MAX_HOSTS = 64;

    /**
     * @param cores processor time, such as 1 or 0.5
     * @param memoryBytes resident set, heap and everything else; a service that needs more is killed by the system
     */
    public record Share(Optional<Double> cores, Optional<Long> memoryBytes) {
        public static final Share ALL = new Share(Optional.empty(), Optional.empty());

        /**
         * A smaller share would ask for less than the kernel's shortest quota, 1 ms in 100 ms. Source: Linux,
         * sched-bwc.
         */
        private static final double MIN_CORES = 0.01;

        /** A JVM with nothing in it holds more than this. */
        private static final long MIN_MEMORY = 32_000_000;

        public Share {
            cores.ifPresent(c -> {
                if (!(c >= MIN_CORES) || c > 1024) {
                    throw new BadInput("cores", c, MIN_CORES + " to 1024");
                }
            });
            memoryBytes.ifPresent(bytes -> {
                if (bytes < MIN_MEMORY) {
                    throw new BadInput("memory", bytes + " bytes", "at least " + MIN_MEMORY + " bytes");
                }
            });
        }

        public boolean isAll() {
            return cores.isEmpty() && memoryBytes.isEmpty();
        }
    }

    /** Bits a second of a link, Ethernet headers included. */
    public record Bandwidth(long bitsPerSecond) {
        public Bandwidth {
            if (bitsPerSecond < 8_000 || bitsPerSecond > 100_000_000_000L) {
                throw new BadInput("bandwidth", bitsPerSecond + " bit/s", "8 kbit/s to 100 Gbit/s");
            }
        }
    }

    /**
     * What a connection to a service suffers.
     *
     * @param delay added to what passes, each way
     * @param bytesPerSecond that pass at most on each connection, each way
     * @param cutEvery after this time a connection is cut
     */
    public record Proxy(Duration delay, Optional<Long> bytesPerSecond, Optional<Duration> cutEvery) {
        public Proxy {
            if (delay.isNegative()) {
                throw new BadInput("delay", delay, "0 or more");
            }
            bytesPerSecond.ifPresent(bytes -> {
                if (bytes < 1) {
                    throw new BadInput("bytes-per-second", bytes, "1 or more");
                }
            });
            cutEvery.ifPresent(cut -> {
                if (!cut.isPositive()) {
                    throw new BadInput("cut-every", cut, "longer than nothing");
                }
            });
        }
    }

    public Limits {
        services = Collections.unmodifiableMap(new LinkedHashMap<>(services));
        Map<String, List<String>> copy = new LinkedHashMap<>();
        List<String> placed = new ArrayList<>();
        hosts.forEach((host, on) -> {
            if (!host.matches("[a-z][a-z0-9]{0,7}")) {
                throw new BadInput("host", host, "a lower-case letter, then up to seven letters or digits");
            }
            for (String service : on) {
                if (placed.contains(service)) {
                    throw new BadInput("hosts", service + " twice", "each service on one host");
                }
                placed.add(service);
            }
            copy.put(host, List.copyOf(on));
        });
        hosts = Collections.unmodifiableMap(copy);
        if (hosts.size() > MAX_HOSTS) {
            throw new BadInput("hosts", hosts.size(), "at most " + MAX_HOSTS);
        }
    }

    public boolean isNone() {
        return equals(NONE);
    }

    public Share of(String service) {
        Share own = services.getOrDefault(service, Share.ALL);
        return new Share(own.cores().or(each::cores), own.memoryBytes().or(each::memoryBytes));
    }

    /** True where some service has a limit on cores or memory. */
    public boolean hasShares() {
        return !each.isAll() || services.values().stream().anyMatch(share -> !share.isAll());
    }

    /** True where services stand on hosts of their own. */
    public boolean hasHosts() {
        return !hosts.isEmpty() || bandwidth.isPresent();
    }

    /** The host of each service, in the topology's order; empty where all stand on this machine. */
    public Map<String, String> hostOf(Topology topology) {
        Map<String, String> hostOf = new LinkedHashMap<>();
        if (hasHosts()) {
            for (Topology.Node node : topology.nodes()) {
                hostOf.put(
                        node.name(),
                        hosts.entrySet().stream()
                                .filter(host -> host.getValue().contains(node.name()))
                                .map(Map.Entry::getKey)
                                .findFirst()
                                .orElse(node.name()));
            }
        }
        return hostOf;
    }

    /** @throws BadInput where a limit names a service that the topology does not have, or leaves one without a host */
    void check(Topology topology) {
        for (String service : services.keySet()) {
            topology.node(service);
        }
        if (hosts.isEmpty()) {
            return;
        }
        hosts.values().forEach(on -> on.forEach(topology::node));
        for (Topology.Node node : topology.nodes()) {
            if (hosts.values().stream().noneMatch(on -> on.contains(node.name()))) {
                throw new BadInput("hosts", "none for " + node.name(), "every service of " + topology + " on a host");
            }
        }
    }
}
