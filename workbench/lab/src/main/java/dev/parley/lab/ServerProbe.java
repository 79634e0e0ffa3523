package dev.parley.lab;

import dev.parley.backend.Backend;
import dev.rpcx.probe.ProcessProbe;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What one broker or database uses between the edges of a window, all of its processes together. Which those are is asked anew at each edge:
 * PostgreSQL has one for each connection. One thread.
 */
final class ServerProbe {
    private final Backend.Running server;

    /** One for each process that was seen: a probe remembers what ended compiler threads took. */
    private final Map<ProcessHandle, ProcessProbe> probes = new HashMap<>();

    private Map<Long, Long> beforeNs = Map.of();
    private long usedNs;

    private ServerProbe(Backend.Running server) {
        this.server = server;
    }

    static ServerProbe of(Backend.Running server) {
        return new ServerProbe(server);
    }

    /** False for one that somebody else runs: nothing is known of it. */
    boolean isOurs() {
        return !server.processes().isEmpty();
    }

    void begin() {
        beforeNs = usedNs();
    }

    void end() {
        // one that began since has used all it has used since
        usedNs = 0;
        usedNs().forEach((pid, ns) -> usedNs += Math.max(0, ns - beforeNs.getOrDefault(pid, 0L)));
    }

    private Map<Long, Long> usedNs() {
        Map<Long, Long> used = new HashMap<>();
        for (ProcessHandle process : server.processes()) {
            ProcessProbe probe = probes.computeIfAbsent(process, ProcessProbe::of);
            used.put(
                    process.pid(),
                    probe.cpuNs().orElse(0) - probe.compilersCpuNs().orElse(0));
        }
        return used;
    }

    double usedMs() {
        return usedNs / 1e6;
    }

    private List<ProcessProbe> probes() {
        return server.processes().stream().map(ProcessProbe::of).toList();
    }

    double residentMb() {
        return probes().stream().mapToLong(p -> p.residentBytes().orElse(0)).sum() / 1e6;
    }

    /** Pages that several of its processes share count once. */
    double proportionalMb() {
        return probes().stream().mapToLong(p -> p.proportionalBytes().orElse(0)).sum() / 1e6;
    }
}
