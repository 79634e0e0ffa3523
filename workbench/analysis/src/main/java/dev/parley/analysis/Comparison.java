package dev.parley.analysis;

import dev.parley.model.Metric;

/**
 * One technology held against another, in one metric and one situation.
 *
 * @param ratio {@code technology} divided by {@code against}, with its 95 % interval
 * @param p two-sided, the larger of the bootstrap's and the t-test's, corrected after Holm for all pairs of the same
 *     situation and metric
 * @param tieBand share by which two may differ at most to be equivalent, such as 0.05
 * @param noiseFloor share that these two differ from themselves on this machine, at 95 %; NaN under four restarts. What
 *     differs by less is not told apart
 * @param indicative true where fewer than five restarts have a figure of both
 */
public record Comparison(
        String topology,
        String message,
        String load,
        Metric metric,
        String technology,
        String against,
        Estimate ratio,
        double p,
        double tieBand,
        double noiseFloor,
        boolean indicative,
        Verdict verdict) {

    /** The same comparison from the other side. */
    public Comparison reversed() {
        Verdict.Kind other = switch (verdict.kind()) {
            case BETTER -> Verdict.Kind.WORSE;
            case WORSE -> Verdict.Kind.BETTER;
            case EQUIVALENT, UNDECIDED, VOID, COLD, UNKNOWN -> verdict.kind();
        };
        return new Comparison(
                topology,
                message,
                load,
                metric,
                against,
                technology,
                new Estimate(1 / ratio.value(), 1 / ratio.high(), 1 / ratio.low()),
                p,
                tieBand,
                noiseFloor,
                indicative,
                new Verdict(other, verdict.moreRestarts(), verdict.why()));
    }
}
