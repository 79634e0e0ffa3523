package dev.rpcx.bench;

import dev.rpcx.probe.ProcessProbe;
import java.util.List;

/**
 * Processor time of several processes together, in nanoseconds, and the part of it that their just-in-time compilers
 * took. Both are read from outside, from {@code /proc}. On a system without it, all of the processor time counts as the
 * compilers', since nothing else is known.
 */
record Compilers(long allNs, long compilersNs) {
    /** Largest part of the processor time of a window that compilers may take if the window is to count as warm. */
    static final double MAX_SHARE = 0.1;

    /**
     * Reads the processor time so far.
     *
     * @param probes of the processes, the same ones at each reading: HotSpot ends compiler threads that have nothing to
     *     do, and only a probe that saw such a thread knows its time afterwards. With new probes the sum falls, and the
     *     share of what the other compiler threads took is hidden
     */
    static Compilers of(List<ProcessProbe> probes) {
        long all = 0;
        long compilers = 0;
        for (ProcessProbe probe : probes) {
            long cpuNs = probe.cpuNs().orElse(0);
            all += cpuNs;
            compilers += probe.compilersCpuNs().orElse(cpuNs);
        }
        return new Compilers(all, compilers);
    }

    /**
     * Returns the compilers' share of the processor time since {@code before}, from 0 to 1. Returns 1 if no processor
     * time has passed, since nothing is known then.
     */
    double shareSince(Compilers before) {
        long all = allNs - before.allNs;
        return all <= 0 ? 1 : Math.clamp((double) (compilersNs - before.compilersNs) / all, 0, 1);
    }
}
