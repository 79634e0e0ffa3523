package dev.rpcx.bench;

/**
 * When a case is called enough for its window to begin: by what compilers do, not by the clock, since a peer that is
 * slow while it is interpreted is called less in the same time, and so compiled later.
 *
 * @param sliceMs what compilers' share is read of; at least one slice is called
 * @param maxMs when what is still cold is measured as it is, and called cold
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
