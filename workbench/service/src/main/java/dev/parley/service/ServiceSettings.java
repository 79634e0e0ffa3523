package dev.parley.service;

import dev.parley.model.BadInput;
import dev.parley.model.Topology;
import dev.parley.spi.Location;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * What a service is told on its command line, as {@code key=value}.
 *
 * @param name the service's own name in the topology
 * @param role empty for the empty service
 * @param healthPort 0 for any free one
 */
record ServiceSettings(String name, Optional<Role> role, int healthPort) {

    private static final Set<String> KEYS =
            Set.of("name", "topology", "work", "transport", "at", "neighbour-transport", "timeout-ms", "health", "log");

    /**
     * What a service does.
     *
     * @param backends where the databases of its work are
     * @param log the file that each of its calls is written to; empty to write none
     * @param neighbourTransport the technology over which it calls its neighbours; it differs from {@code transport}
     *     only in a front
     */
    record Role(
            Topology topology,
            String work,
            String transport,
            Location at,
            String neighbourTransport,
            Map<String, Location> neighbours,
            Map<String, Location> backends,
            Duration timeout,
            Optional<Path> log) {

        Location locationOf(String callee) {
            Location location = neighbours.get(callee);
            if (location == null) {
                throw new BadInput("neighbour." + callee, "missing", "host:port or host:port/service");
            }
            return location;
        }
    }

    static ServiceSettings parse(String[] args) {
        Map<String, String> values = new LinkedHashMap<>();
        Map<String, Location> neighbours = new LinkedHashMap<>();
        Map<String, Location> backends = new LinkedHashMap<>();
        for (String arg : args) {
            int equals = arg.indexOf('=');
            String key = equals < 0 ? arg : arg.substring(0, equals);
            String value = equals < 0 ? "" : arg.substring(equals + 1);
            if (key.startsWith("neighbour.")) {
                neighbours.put(key.substring("neighbour.".length()), Location.parse(value));
            } else if (key.startsWith("backend.")) {
                backends.put(key.substring("backend.".length()), Location.parse(value));
            } else if (!KEYS.contains(key) || value.isEmpty()) {
                throw new BadInput(
                        "argument",
                        arg,
                        "key=value with one of " + KEYS.stream().sorted().toList());
            } else {
                values.put(key, value);
            }
        }
        String name = values.getOrDefault("name", "empty");
        int healthPort = number("health", values.getOrDefault("health", "0").replace("127.0.0.1:", ""));
        if (!values.containsKey("transport") && !values.containsKey("work")) {
            return new ServiceSettings(name, Optional.empty(), healthPort);
        }
        Topology topology = Topology.parse(need(values, "topology"));
        String transport = need(values, "transport");
        return new ServiceSettings(
                name,
                Optional.of(new Role(
                        topology,
                        need(values, "work"),
                        transport,
                        Location.parse(need(values, "at")),
                        values.getOrDefault("neighbour-transport", transport),
                        Map.copyOf(neighbours),
                        Map.copyOf(backends),
                        Duration.ofMillis(number("timeout-ms", values.getOrDefault("timeout-ms", "5000"))),
                        Optional.ofNullable(values.get("log")).map(Path::of))),
                healthPort);
    }

    private static String need(Map<String, String> values, String key) {
        String value = values.get(key);
        if (value == null) {
            throw new BadInput(key, "missing", key + "=…");
        }
        return value;
    }

    private static int number(String key, String value) {
        try {
            return Integer.parseUnsignedInt(value);
        } catch (NumberFormatException e) {
            throw new BadInput(key, value, "a whole number");
        }
    }
}
