package dev.parley.limits;

import dev.parley.model.Limits.Bandwidth;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Hosts on this machine. Each is a network namespace; a bridge joins them in 10.77.n.0/24, where this machine is number
 * 1. A host's link is limited at both of its ends with a token bucket, so each way carries at most its bandwidth.
 *
 * <p>Names hold the id of this process, at most 15 characters: {@code py<pid in base 36>h<n>}.
 */
final class Hosts implements AutoCloseable {
    private static final List<String> TOOLS = List.of("ip", "tc", "nsenter");
    /** What may wait in a link's queue. A full one drops, as a switch does. */
    private static final String QUEUE = "100ms";
    /** The largest Ethernet frame and its header: a bucket must hold one. */
    private static final long MIN_BUCKET = 1_600;

    private static final int NETWORKS = 256;

    private final String name;
    private final int network;
    private final Map<String, Integer> numbers = new LinkedHashMap<>();

    private Hosts(String name, int network) {
        this.name = name;
        this.network = network;
    }

    /** Why this machine can have no hosts; empty where it can. It sets one up to find out. */
    static Optional<String> obstacle() {
        for (String tool : TOOLS) {
            if (Shell.find(tool).isEmpty()) {
                return Optional.of("no " + tool + " (Debian: iproute2, util-linux)");
            }
        }
        try (Hosts trial = make(List.of("a"), Optional.of(new Bandwidth(1_000_000)))) {
            return trial.address("a").isEmpty() ? Optional.of("no address") : Optional.empty();
        } catch (LimitsException e) {
            return Optional.of(e.getMessage() + " (network namespaces need Linux and root)");
        }
    }

    static Hosts make(List<String> hosts, Optional<Bandwidth> bandwidth) {
        removeAbandoned();
        String name = "py" + Long.toString(ProcessHandle.current().pid(), 36);
        Hosts made = new Hosts(name, freeNetwork());
        made.takeDown(hosts.size());
        try {
            made.setUp(hosts, bandwidth);
            return made;
        } catch (LimitsException e) {
            made.takeDown(hosts.size());
            throw e;
        }
    }

    private void setUp(List<String> hosts, Optional<Bandwidth> bandwidth) {
        Shell.run("ip", "link", "add", bridge(), "type", "bridge");
        Shell.run("ip", "address", "add", gateway() + "/24", "dev", bridge());
        Shell.run("ip", "link", "set", bridge(), "up");
        for (String host : hosts) {
            int n = numbers.size() + 2;
            numbers.put(host, n);
            String space = space(n);
            Shell.run("ip", "netns", "add", space);
            Shell.run("ip", "link", "add", outer(n), "type", "veth", "peer", "name", "eth0", "netns", space);
            Shell.run("ip", "link", "set", outer(n), "master", bridge());
            Shell.run("ip", "link", "set", outer(n), "up");
            Shell.run("ip", "-n", space, "address", "add", address(host) + "/24", "dev", "eth0");
            Shell.run("ip", "-n", space, "link", "set", "lo", "up");
            Shell.run("ip", "-n", space, "link", "set", "eth0", "up");
            bandwidth.ifPresent(b -> {
                // a frame holds one segment, as on a wire: in a larger frame, only the headers of the first would be
                // counted
                Shell.run("ip", "link", "set", "dev", outer(n), "gso_max_segs", "1");
                Shell.run("ip", "-n", space, "link", "set", "dev", "eth0", "gso_max_segs", "1");
                limit(b, "tc", "qdisc", "add", "dev", outer(n));
                limit(b, "tc", "-n", space, "qdisc", "add", "dev", "eth0");
            });
        }
    }

    private static void limit(Bandwidth bandwidth, String... qdisc) {
        List<String> command = new java.util.ArrayList<>(List.of(qdisc));
        // ten milliseconds' worth, so that a kernel with 100 ticks a second still reaches the rate
        long bucket = Math.max(MIN_BUCKET, bandwidth.bitsPerSecond() / 8 / 100);
        command.addAll(List.of(
                "root",
                "tbf",
                "rate",
                bandwidth.bitsPerSecond() + "bit",
                "burst",
                Long.toString(bucket),
                "latency",
                QUEUE));
        Shell.run(command.toArray(String[]::new));
    }

    /** The address of this machine, as hosts see it. */
    String gateway() {
        return "10.77." + network + ".1";
    }

    String address(String host) {
        return "10.77." + network + "." + number(host);
    }

    /** What stands before a command that is to run on a host. */
    List<String> prefix(String host) {
        return List.of("nsenter", "--net=/run/netns/" + space(number(host)), "--");
    }

    private int number(String host) {
        Integer number = numbers.get(host);
        if (number == null) {
            throw new LimitsException("no host " + host + " (there are " + numbers.keySet() + ")", null);
        }
        return number;
    }

    private String bridge() {
        return name + "b";
    }

    private String outer(int n) {
        return name + "v" + n;
    }

    private String space(int n) {
        return name + "h" + n;
    }

    private static int freeNetwork() {
        String taken = Shell.run("ip", "-o", "-4", "address");
        int first = (int) (ProcessHandle.current().pid() % NETWORKS);
        for (int i = 0; i < NETWORKS; i++) {
            int network = (first + i) % NETWORKS;
            if (!taken.contains(" 10.77." + network + ".")) {
                return network;
            }
        }
        throw new LimitsException("no free network among 10.77.0.0/16", null);
    }

    private void takeDown(int hosts) {
        for (int n = 2; n < hosts + 2; n++) {
            Shell.tryTo("ip", "link", "delete", outer(n));
            Shell.tryTo("ip", "netns", "delete", space(n));
        }
        Shell.tryTo("ip", "link", "delete", bridge());
    }

    /**
     * Removes the hosts of labs that were killed. A namespace goes when it is unnamed and its last process has ended,
     * and its links go with it.
     */
    private static void removeAbandoned() {
        Shell.run("ip", "netns", "list")
                .lines()
                .map(line -> line.split(" ", 2)[0])
                .forEach(space -> {
                    if (space.matches("py[0-9a-z]{1,7}h[0-9]+") && isGone(space.substring(2, space.lastIndexOf('h')))) {
                        Shell.tryTo("ip", "netns", "delete", space);
                        Shell.tryTo("ip", "link", "delete", space.substring(0, space.lastIndexOf('h')) + "b");
                    }
                });
    }

    private static boolean isGone(String pid36) {
        return ProcessHandle.of(Long.parseLong(pid36, 36)).isEmpty();
    }

    @Override
    public void close() {
        takeDown(numbers.size());
    }
}
