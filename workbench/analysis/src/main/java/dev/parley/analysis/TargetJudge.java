package dev.parley.analysis;

import dev.parley.analysis.TargetAnswer.Finding;
import dev.parley.analysis.TargetAnswer.Kind;
import dev.parley.model.Metric;
import dev.parley.model.Target;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.function.ToLongFunction;

/**
 * Answers a target for one technology in one situation. A condition is met, or is not, where the whole 95 % interval of
 * its figure lies on one side of the bound and a t-test of the restarts against the bound is sure as well. A percentile
 * is that of all requests that were due: a technology that drops its slowest requests is not fast. The rules stand in
 * docs/measuring.md, Targets.
 */
final class TargetJudge {
    /**
     * Share of the due requests, in percent, that services answer in time when they keep up with a rate. What differs
     * by less than the tie band serves an architect alike.
     */
    static final double KEEPS_UP = 100 * (1 - Contest.TIE_BAND);

    private static final double LEVEL = 0.05;

    /** What adding up may add to a mean: restarts that are all at the bound are not beyond it. */
    private static final double ROUNDING = 1e-9;

    private final Target target;
    private final Cell cell;
    private final CellSamples samples;
    private final String validity;
    private final ToLongFunction<Metric> seed;

    /**
     * @param validity of the cell's figures under load
     * @param seed of a metric's interval: that of the summary, so that both are the same interval
     */
    TargetJudge(Target target, Cell cell, CellSamples samples, String validity, ToLongFunction<Metric> seed) {
        this.target = target;
        this.cell = cell;
        this.samples = samples;
        this.validity = validity;
        this.seed = seed;
    }

    TargetAnswer answer() {
        List<JudgedTrial> counted = samples.counted();
        boolean isValid = counted.stream().anyMatch(JudgedTrial::isValid);
        if (!isValid && !fellBehind(counted)) {
            return undecided(invalid());
        }
        Optional<String> few = few(samples.of(Metric.SUCCESS_SHARE));
        if (few.isPresent()) {
            return undecided(few.get());
        }
        List<Finding> findings = findings();
        if (!isValid) {
            // response times of such trials show nothing, and that requests were not answered is shown all the same
            List<Finding> notMet = findings.stream()
                    .filter(finding -> finding.metric() == Metric.SUCCESS_SHARE && finding.kind() == Kind.DOES_NOT)
                    .toList();
            return notMet.isEmpty() ? undecided(invalid()) : answer(Kind.DOES_NOT, notMet, "");
        }
        return answer(Kind.together(findings.stream().map(Finding::kind).toList()), findings, "");
    }

    private TargetAnswer undecided(String why) {
        return answer(Kind.UNDECIDED, List.of(), why);
    }

    private TargetAnswer answer(Kind kind, List<Finding> findings, String why) {
        return new TargetAnswer(cell.technology(), cell.situation(), kind, findings, why);
    }

    /**
     * True where trials ended under a rate, and each is invalid for nothing but what services that fall behind bring
     * about.
     */
    private boolean fellBehind(List<JudgedTrial> counted) {
        return cell.load().hasRate()
                && !counted.isEmpty()
                && counted.stream().flatMap(trial -> trial.reasons().stream()).allMatch(Validity::isOfFallingBehind);
    }

    private String invalid() {
        if (samples.counted().isEmpty()) {
            return validity;
        }
        if (validity.startsWith(Summary.COLD)) {
            return validity + "; a longer rehearsal would decide it";
        }
        return validity
                + (validity.startsWith(Summary.UNKNOWN)
                        ? "; a longer window would decide it"
                        : "; trials that are not void would decide it");
    }

    /** Why so few restarts decide nothing; empty where they are enough. */
    private static Optional<String> few(Sample sample) {
        if (sample.count() < Validity.MIN_VERDICT_RESTARTS) {
            return Optional.of("an answer takes " + Validity.MIN_VERDICT_RESTARTS + " restarts or more, and "
                    + sample.count() + (sample.count() == 1 ? " counts" : " count"));
        }
        String few = Contest.tooFew(sample.count(), sample.tried());
        return few.isEmpty() ? Optional.empty() : Optional.of(few + "; more restarts would decide it");
    }

    private List<Finding> findings() {
        List<Finding> findings = new ArrayList<>();
        if (target.rate().isPresent()) {
            findings.add(rate());
        }
        for (Target.Condition condition : target.conditions()) {
            Target.Figure figure = condition.figure();
            findings.add(
                    figure.isShare()
                            ? answered(figure.title(), condition.bound())
                            : percentile(figure, condition.bound()));
        }
        return findings;
    }

    /**
     * Replies that come after the end of the window are right ones too; where that takes long, nothing shows that
     * services keep up.
     */
    private Finding rate() {
        Finding finding = answered("rate", KEEPS_UP);
        if (finding.kind() != Kind.MEETS) {
            return finding;
        }
        long notSent = samples.notSent();
        if (notSent > 0) {
            return finding.undecided(notSent + (notSent == 1 ? " request was" : " requests were")
                    + " not sent, so that the rate was not offered in full; a lower rate would tell");
        }
        double seconds =
                samples.counted().getFirst().row().spec().window().length().toNanos() / 1e9;
        double own = samples.of(Metric.WINDOW_LENGTH).most();
        return own * KEEPS_UP > 100 * seconds
                ? finding.undecided(String.format(
                        Locale.ROOT,
                        "the last replies came %.1f s after a window of %.1f s: a longer window would tell whether they"
                                + " fall behind",
                        own - seconds,
                        seconds))
                : finding;
    }

    private Finding answered(String name, double bound) {
        return finding(name, Metric.SUCCESS_SHARE, bound, samples.of(Metric.SUCCESS_SHARE));
    }

    /** Where a smaller share of requests was answered in time, the percentile falls on one that has no time. */
    private Finding percentile(Target.Figure figure, double bound) {
        Finding answered = answered(figure.title(), figure.percent());
        if (answered.kind() != Kind.MEETS) {
            return answered;
        }
        Metric metric = figure.metric();
        Sample ofDue = samples.ofDue(figure, new SplittableRandom(seed.applyAsLong(metric)));
        Finding finding = finding(figure.title(), metric, bound, ofDue);
        long wanted = metric.samplesWanted();
        return samples.leastSamples() >= wanted
                ? finding
                : finding.undecided(samples.leastSamples() + " samples of the " + wanted
                        + " that it takes in each restart; a longer window would decide it");
    }

    private Finding finding(String name, Metric metric, double bound, Sample sample) {
        Estimate estimate = Estimate.of(metric, sample, seed.applyAsLong(metric));
        TTest test = TTest.against(sample.points(), bound);
        boolean isLower = metric.better() == Metric.Better.LOWER;
        boolean isGood = isLower ? estimate.high() <= bound + ROUNDING : estimate.low() >= bound - ROUNDING;
        boolean isBad = isLower ? estimate.low() > bound + ROUNDING : estimate.high() < bound - ROUNDING;
        // where all restarts are the same there is no error to test with, and the interval decides
        boolean isSure = test.error() == 0 || test.p() < LEVEL;
        Kind kind = !isSure ? Kind.UNDECIDED : isGood ? Kind.MEETS : isBad ? Kind.DOES_NOT : Kind.UNDECIDED;
        return new Finding(
                name, metric, bound, estimate, kind, kind == Kind.UNDECIDED ? more(sample, estimate, bound, test) : "");
    }

    /** About how many restarts more would decide, if they went as these did. */
    private static String more(Sample sample, Estimate estimate, double bound, TTest test) {
        double off = Math.abs(bound - estimate.value());
        double half = bound > estimate.value() ? estimate.high() - estimate.value() : estimate.value() - estimate.low();
        for (int more = 1; more < Verdict.MANY; more++) {
            double times = 1 + (double) more / sample.count();
            if (off > half / Math.sqrt(times) && test.times(times).p() < LEVEL) {
                return "about " + more + (more == 1 ? " more restart" : " more restarts") + " would decide it";
            }
        }
        return "it lies too near to the bound for restarts to decide it";
    }
}
