package dev.parley.limits;

import dev.parley.model.BadInput;
import dev.parley.model.Limits;
import dev.parley.model.Limits.Proxy;
import dev.parley.model.Topology;
import dev.rpcx.probe.ByteRelay;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/** The limits of one boot's services, as they are set up on this machine. One thread. */
public final class Confinement implements AutoCloseable {
    private static final String LOOPBACK = "127.0.0.1";

    private final Limits limits;
    private final Map<String, String> hostOf;
    private final Optional<Cgroups> cgroups;
    private final Optional<Hosts> hosts;
    private final List<ByteRelay> relays = new ArrayList<>();
    private final Map<String, List<Path>> doors = new HashMap<>();

    private Confinement(Limits limits, Map<String, String> hostOf, Optional<Cgroups> cgroups, Optional<Hosts> hosts) {
        this.limits = limits;
        this.hostOf = hostOf;
        this.cgroups = cgroups;
        this.hosts = hosts;
    }

    /**
     * Whether this machine can keep the limits; sets up and takes down a host of its own to find out.
     *
     * @throws BadInput saying which it cannot, and why
     */
    public static void check(Limits limits) {
        if (limits.hasShares()) {
            Cgroups.obstacle(Cgroups.ROOT).ifPresent(why -> {
                throw new BadInput(
                        "limits", "cores and memory, which this machine cannot limit: " + why, "control groups");
            });
        }
        if (limits.hasHosts()) {
            Hosts.obstacle().ifPresent(why -> {
                throw new BadInput(
                        "limits", "hosts and bandwidth, which this machine cannot give: " + why, "network namespaces");
            });
        }
    }

    public static Confinement of(Limits limits, Topology topology) {
        Map<String, String> hostOf = limits.hostOf(topology);
        Optional<Cgroups> cgroups = limits.hasShares() ? Optional.of(Cgroups.in(Cgroups.ROOT)) : Optional.empty();
        try {
            Optional<Hosts> hosts = limits.hasHosts()
                    ? Optional.of(Hosts.make(List.copyOf(new LinkedHashSet<>(hostOf.values())), limits.bandwidth()))
                    : Optional.empty();
            return new Confinement(limits, hostOf, cgroups, hosts);
        } catch (LimitsException e) {
            cgroups.ifPresent(Cgroups::close);
            throw e;
        }
    }

    /**
     * Gives services whole cores in place of parts of one, until {@link #tighten}: a JVM that boots and compiles on a
     * tenth of a core takes ten times as long until it can be measured. It sees the same number of cores before and
     * after, since it rounds up what it has. Memory is limited from the beginning.
     */
    public void relax() {
        cgroups.ifPresent(Cgroups::relax);
    }

    /** Gives services what their limits say. */
    public void tighten() {
        cgroups.ifPresent(Cgroups::tighten);
    }

    /** Where a service listens. */
    public String address(String service) {
        return hosts.map(h -> h.address(hostOf.getOrDefault(service, service))).orElse(LOOPBACK);
    }

    /**
     * What stands before the command that starts a service: it enters the service's group and host, and then becomes
     * that command. Empty where there is neither.
     */
    public List<String> prefix(String service) {
        List<String> prefix = new ArrayList<>();
        Limits.Share share = limits.of(service);
        if (cgroups.isPresent() && !share.isAll()) {
            List<Path> entrances =
                    doors.computeIfAbsent(service, s -> cgroups.get().group(s, share));
            String enter = entrances.stream().map(door -> "echo $$ >" + door).collect(Collectors.joining(" && "));
            prefix.addAll(List.of("/bin/sh", "-c", enter + " && exec \"$@\"", "sh"));
        }
        hosts.ifPresent(h -> prefix.addAll(h.prefix(hostOf.getOrDefault(service, service))));
        return prefix;
    }

    /**
     * Puts a relay in front of a service where the limits ask for one.
     *
     * @return the host and port that callers are to use instead; empty where they reach the service itself
     */
    public Optional<ByteRelay> relayTo(String service, int port) {
        Optional<ByteRelay> relay = limits.proxy()
                .map(proxy -> relay(hosts.map(Hosts::gateway).orElse(LOOPBACK), address(service), port, proxy));
        relay.ifPresent(relays::add);
        return relay;
    }

    private static ByteRelay relay(String at, String host, int port, Proxy proxy) {
        try {
            return ByteRelay.troubled(
                    at, host, port, new ByteRelay.Trouble(proxy.delay(), proxy.bytesPerSecond(), proxy.cutEvery()));
        } catch (UncheckedIOException e) {
            throw new LimitsException(String.valueOf(e.getMessage()), e);
        }
    }

    /** Takes down what was set up. To be called when the services have ended. */
    @Override
    public void close() {
        relays.forEach(ByteRelay::close);
        hosts.ifPresent(Hosts::close);
        cgroups.ifPresent(Cgroups::close);
    }
}
