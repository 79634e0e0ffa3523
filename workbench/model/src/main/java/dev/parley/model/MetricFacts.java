package dev.parley.model;

import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;

/**
 * What one {@link Metric} is, as its entry writes it down. What an entry does not say is as it is for most metrics: a
 * figure of a trial's load that was stored under the metric's key, which every trial has and whose median is shown, in
 * files only.
 */
final class MetricFacts {
    final Metric.Subject subject;
    final String title;
    final String unit;
    final Metric.Better better;
    final String meaning;
    List<MetricSource> sources = List.of(new MetricSource.Figures());
    Metric.Scope scope = Metric.Scope.LOAD;
    boolean isSummed;
    boolean isMean;
    boolean isOptional;
    Optional<String> absence = Optional.empty();
    long samplesWanted;
    boolean isCompared;
    Predicate<Load> results = _ -> false;
    Optional<Metric> whole = Optional.empty();
    Optional<String> column = Optional.empty();
    Optional<Metric.Section> section = Optional.empty();
    String axis;

    private MetricFacts(Metric.Subject subject, String title, String unit, Metric.Better better, String meaning) {
        this.subject = subject;
        this.title = title;
        this.unit = unit;
        this.better = better;
        this.meaning = meaning;
        this.axis = title;
    }

    /**
     * @param title a few words for people, such as {@code p99 response time}
     * @param unit see {@link Metric#unit()}
     * @param meaning what a reader of the figure must know, as it follows on the metric's name and a colon
     */
    static MetricFacts metric(Metric.Subject subject, String title, String unit, Metric.Better better, String meaning) {
        return new MetricFacts(subject, title, unit, better, meaning);
    }

    /** It is computed from the first of these of which a technology has rows. */
    MetricFacts from(MetricSource... each) {
        sources = List.of(each);
        return this;
    }

    MetricFacts belongsTo(Metric.Scope extent) {
        scope = extent;
        return this;
    }

    /** The figure of all services is the sum of theirs, not that of a typical one. */
    MetricFacts summed() {
        isSummed = true;
        return this;
    }

    /** The figure of all restarts is their mean, not their median. */
    MetricFacts averaged() {
        isMean = true;
        return this;
    }

    /** Some technologies, works, loads or earlier runs do not have it. */
    MetricFacts optional() {
        isOptional = true;
        return this;
    }

    /**
     * A trial that went well may have no such figure.
     *
     * @param told what that tells, such as {@code none: no step gave out}
     */
    MetricFacts absentMeans(String told) {
        isOptional = true;
        absence = Optional.of(told);
        return this;
    }

    /** With fewer samples of a trial it is no more than a hint. */
    MetricFacts wants(long samples) {
        samplesWanted = samples;
        return this;
    }

    /** Technologies are held against each other in it. */
    MetricFacts compared() {
        isCompared = true;
        return this;
    }

    /** It is what these loads are for, and some loads alone have it. */
    MetricFacts resultOf(Predicate<Load> loads) {
        isOptional = true;
        results = loads;
        return this;
    }

    /** It is drawn inside the chart of {@code larger}, which it is a part of. */
    MetricFacts partOf(Metric larger) {
        whole = Optional.of(larger);
        return this;
    }

    /** The terminal's table has a column of it. All columns share 100 characters, so that the head is a short one. */
    MetricFacts column(String head) {
        column = Optional.of(head);
        return this;
    }

    /**
     * The report has a chart of it.
     *
     * @param of what the chart's axis shows, without the unit
     */
    MetricFacts chartedIn(Metric.Section place, String of) {
        section = Optional.of(place);
        axis = of;
        return this;
    }
}
