package dev.rpcx.bench;

import java.util.Locale;

/**
 * What one case gave in one round.
 *
 * @param cpuUsPerCall both sides together
 * @param clientBytesPerCall allocated on the heap by all threads
 */
record Figures(
        double callsPerSecond,
        double p50Us,
        double p99Us,
        double cpuUsPerCall,
        double clientBytesPerCall,
        double serverBytesPerCall,
        double wireOut,
        double wireBack) {

    String toLine() {
        return String.format(
                Locale.ROOT,
                "%.3f %.3f %.3f %.3f %.3f %.3f %.2f %.2f",
                callsPerSecond,
                p50Us,
                p99Us,
                cpuUsPerCall,
                clientBytesPerCall,
                serverBytesPerCall,
                wireOut,
                wireBack);
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
