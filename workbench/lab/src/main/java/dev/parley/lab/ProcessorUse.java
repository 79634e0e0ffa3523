package dev.parley.lab;

import dev.parley.model.FigureRow;
import dev.parley.model.Metric;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/**
 * Processor time of one service, since it began or within a window.
 *
 * @param allNs processor time of all of its threads, those of its just-in-time compilers among them
 * @param compilersNs processor time of the compilers' threads alone; empty where the system does not tell
 */
record ProcessorUse(long allNs, OptionalLong compilersNs) {
    static final ProcessorUse NONE = new ProcessorUse(0, 0);

    ProcessorUse(long allNs, long compilersNs) {
        this(allNs, OptionalLong.of(compilersNs));
    }

    ProcessorUse since(ProcessorUse earlier) {
        return new ProcessorUse(
                allNs - earlier.allNs,
                compilersNs.isPresent() && earlier.compilersNs.isPresent()
                        ? OptionalLong.of(compilersNs.getAsLong() - earlier.compilersNs.getAsLong())
                        : OptionalLong.empty());
    }

    /**
     * The service without its compilers: what one that has run for hours would have used, since it compiles no more.
     */
    private long servingNs() {
        return Math.max(0, allNs - Math.max(0, compilersNs.orElse(0)));
    }

    /**
     * The figures of one window: what services use, without their compilers, and apart from it how much those took.
     *
     * @param used of each service in the window
     */
    static List<FigureRow> figures(int trialId, Map<String, ProcessorUse> used, long lengthNs, long answered) {
        List<FigureRow> figures = new ArrayList<>();
        used.forEach((service, own) -> figures.add(
                new FigureRow(trialId, Metric.CPU_SHARE, service, 100.0 * own.servingNs() / Math.max(1, lengthNs))));
        long allNs = used.values().stream().mapToLong(ProcessorUse::allNs).sum();
        if (used.values().stream().allMatch(own -> own.compilersNs.isPresent())) {
            // A share above 100 % is not cut off here: it is impossible, and Impossible says so. Services that used no
            // processor time compiled nothing.
            long compilersNs = Math.max(
                    0,
                    used.values().stream()
                            .mapToLong(own -> own.compilersNs.orElse(0))
                            .sum());
            figures.add(new FigureRow(
                    trialId, Metric.COMPILING_SHARE, FigureRow.SYSTEM, allNs == 0 ? 0 : 100.0 * compilersNs / allNs));
        }
        if (answered > 0) {
            long servingNs =
                    used.values().stream().mapToLong(ProcessorUse::servingNs).sum();
            figures.add(new FigureRow(trialId, Metric.CPU_PER_REQUEST, FigureRow.SYSTEM, servingNs / 1e6 / answered));
        }
        return figures;
    }
}
