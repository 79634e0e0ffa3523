package dev.rpcx.bench;

import java.util.Locale;

/**
 * Figures that one case gave in one round.
 *
 * @param cpuUsPerCall processor time in microseconds for each call, of client and server together
 * @param clientBytesPerCall bytes that all threads of the client allocated on the heap for each call
 * @param compilerShare part of the processor time of client and server in the window that their just-in-time compilers
 *     took, 0 to 1
 * @param warmUpMs time in milliseconds for which the case was called before its window began
 */
record Figures(
        double callsPerSecond,
        double p50Us,
        double p99Us,
        double cpuUsPerCall,
        double clientBytesPerCall,
        double serverBytesPerCall,
        double compilerShare,
        double warmUpMs) {

    /**
     * Returns whether compilers took a larger part of the window than they may take of a warm window. The figures are
     * then those of code that was still being compiled.
     */
    boolean isCold() {
        return compilerShare > Compilers.MAX_SHARE;
    }

    String toLine() {
        return String.format(
                Locale.ROOT,
                "%.3f %.3f %.3f %.3f %.3f %.3f %.4f %.0f",
                callsPerSecond,
                p50Us,
                p99Us,
                cpuUsPerCall,
                clientBytesPerCall,
                serverBytesPerCall,
                compilerShare,
                warmUpMs);
    }

    static Figures ofLine(String line) {
        String[] f = line.split(" ");
        double[] v = new double[f.length];
        for (int i = 0; i < f.length; i++) {
            v[i] = Double.parseDouble(f[i]);
        }
        return new Figures(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
    }
}
