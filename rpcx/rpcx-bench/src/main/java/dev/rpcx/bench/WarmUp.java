package dev.rpcx.bench;

/**
 * Rule for when a case has been called enough for its window to begin. The rule goes by what compilers do and not by
 * the clock: a peer that is slow while it is interpreted is called less often in the same time, and so is compiled
 * later.
 *
 * @param sliceMs length in milliseconds of a slice, for which the compilers' share is read; at least one slice is
 *     called
 * @param maxMs time in milliseconds after which a case that is still cold is measured as it is, and marked as cold
 */
record WarmUp(long sliceMs, long maxMs) {
    WarmUp {
        if (sliceMs <= 0 || maxMs < sliceMs) {
            throw new IllegalArgumentException("warm-up of slices of " + sliceMs + " ms, at most " + maxMs
                    + " ms (expected: a slice above 0 ms, and at least one)");
        }
    }

    boolean isOver(double compilerShare, long tookMs) {
        return compilerShare <= Compilers.MAX_SHARE || tookMs >= maxMs;
    }
}
