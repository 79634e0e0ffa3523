package dev.rpcx.bench;

import dev.parley.probe.ProcessProbe;
import java.util.List;

/**
 * Processor time of several processes together, and the part of it that their just-in-time compilers took. Read from
 * outside, from {@code /proc}; where there is none, all of it is said to be the compilers', since nothing else is
 * known.
 */
record Compilers(long allNs, long compilersNs) {
    /** A window is warm when compilers take at most this part of it. */
    static final double MAX_SHARE = 0.1;

    static Compilers of(List<ProcessHandle> processes) {
        long all = 0;
        long compilers = 0;
        for (ProcessHandle process : processes) {
            ProcessProbe probe = ProcessProbe.of(process);
            long cpuNs = probe.cpuNs().orElse(0);
            all += cpuNs;
            compilers += probe.compilersCpuNs().orElse(cpuNs);
        }
        return new Compilers(all, compilers);
    }

    /** The compilers' share of the processor time, from 0 to 1; 1 where no time has passed, which tells nothing. */
    double shareSince(Compilers before) {
        long all = allNs - before.allNs;
        return all <= 0 ? 1 : Math.clamp((double) (compilersNs - before.compilersNs) / all, 0, 1);
    }
}
