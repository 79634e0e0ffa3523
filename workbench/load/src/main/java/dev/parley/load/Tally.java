package dev.parley.load;

import dev.parley.model.SecondRow;
import dev.parley.protocol.Event;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.HdrHistogram.Histogram;

/** A window's figures, taken from its stretches while they run. One thread, the engine's. */
final class Tally {
    private final int trialId;
    private final Consumer<Event> events;
    private final List<Stretch> open = new ArrayList<>();
    private final Histogram all = new Histogram(Outcomes.DIGITS);
    private final Histogram second = new Histogram(Outcomes.DIGITS);
    private final Histogram service = new Histogram(Outcomes.DIGITS);
    private final Histogram sendDelay = new Histogram(Outcomes.DIGITS);
    private final Histogram error = new Histogram(Outcomes.DIGITS);
    private final Histogram firstHalf = new Histogram(Outcomes.DIGITS);
    private boolean isHalved;
    private final Histogram interval = new Histogram(Outcomes.DIGITS);
    private final Histogram untold = new Histogram(Outcomes.DIGITS);
    private Outcomes.Counts closed = Outcomes.Counts.NONE;
    private Outcomes.Counts atSecond = Outcomes.Counts.NONE;
    private long wrongAnywhere;
    private long toldTwice;
    private double inSystemNs;
    private double recordedNs;
    private long countedNs;
    private int seconds;
    private int stretches;
    /** Replies of every kind in stretches that have been told, counted ones or not. */
    private long answeredInClosed;

    private int usersAtFirstFailure;
    private String firstFailure = "";

    Tally(int trialId, Consumer<Event> events) {
        this.trialId = trialId;
        this.events = events;
    }

    void open(Stretch stretch) {
        open.add(stretch);
    }

    /**
     * Takes what has ended since this was last called; response times of all stretches together. Valid until the next
     * call.
     */
    Histogram take() {
        interval.reset();
        for (Stretch stretch : open) {
            Histogram own = new Histogram(Outcomes.DIGITS);
            stretch.outcomes.takeResponses(own);
            stretch.responses.add(own);
            interval.add(own);
        }
        second.add(interval);
        untold.add(interval);
        all.add(interval);
        return interval;
    }

    /** Takes the same, and returns the response times of all that was taken since this was last called. */
    Histogram takeUntold() {
        take();
        Histogram told = untold.copy();
        untold.reset();
        return told;
    }

    /** The last stretch lasts until then, if that is later than its end. */
    void extendLast(long untilNs) {
        Stretch last = open.getLast();
        last.endedNs = Math.max(last.endedNs, untilNs);
    }

    /** All outcomes so far that were no success. */
    Outcomes.Counts counts() {
        Outcomes.Counts sum = closed;
        for (Stretch stretch : open) {
            sum = sum.plus(stretch.outcomes.counts());
        }
        return sum;
    }

    /** Replies so far, right or wrong, of all stretches, those that do not count too, as far as they have been taken. */
    long answered() {
        return answeredInClosed + open.stream().mapToLong(Tally::answered).sum();
    }

    private static long answered(Stretch stretch) {
        Outcomes.Counts counts = stretch.outcomes.counts();
        return stretch.responses.getTotalCount() + counts.late() + counts.wrong();
    }

    /** The first half of the window is over: what is answered from here on belongs to the second. */
    void endFirstHalf() {
        take();
        firstHalf.add(all);
        isHalved = true;
    }

    /** False where the window ended before its half was seen, or has no halves. */
    boolean isHalved() {
        return isHalved;
    }

    Histogram firstHalf() {
        return firstHalf;
    }

    /** All responses but those of the first half. */
    Histogram secondHalf() {
        Histogram second = all.copy();
        second.subtract(firstHalf);
        return second;
    }

    /** A second of the window is over. */
    void endSecond() {
        Outcomes.Counts now = counts();
        tellSecond(second, now.since(atSecond));
        atSecond = now;
        second.reset();
    }

    private void tellSecond(Histogram responses, Outcomes.Counts counts) {
        events.accept(new Event.Second(new SecondRow(
                trialId,
                seconds++,
                responses.getTotalCount(),
                counts.late(),
                counts.wrong(),
                counts.failed(),
                counts.notSent(),
                Encoded.of(responses))));
    }

    /** Stretches that are over and whose requests all have their outcomes are told, the oldest first. */
    void closeSettled(boolean isEach) {
        while (!open.isEmpty()
                && open.getFirst().endedNs != 0
                && open.getFirst().isSettled()) {
            close(open.removeFirst(), isEach);
        }
    }

    /** What has no outcome by now gets none of its own: it counts as failed. Then all stretches are told. */
    void closeAll(boolean isEach, long nowNs, Throwable cause) {
        for (Stretch stretch : open) {
            stretch.outcomes.closeInSystem(cause, nowNs);
            for (long left = stretch.outcomes.due() - stretch.ended(); left > 0; left--) {
                stretch.outcomes.failed(cause, stretch.beganNs, nowNs);
            }
        }
        if (!isEach) {
            endSecond();
        }
        while (!open.isEmpty()) {
            close(open.removeFirst(), isEach);
        }
    }

    /** @param isEach whether the load is a counted one, in which a counted stretch stands where others have a second */
    private void close(Stretch stretch, boolean isEach) {
        Outcomes.Counts counts = stretch.outcomes.counts();
        Histogram services = stretch.outcomes.serviceTimes();
        Histogram delays = stretch.outcomes.sendDelays();
        Histogram errors = stretch.outcomes.errorTimes();
        Histogram scenarios = stretch.outcomes.scenarioTimes();
        inSystemNs += stretch.outcomes.inSystemNs();
        recordedNs += sum(stretch.responses) + sum(errors);
        answeredInClosed += answered(stretch);
        wrongAnywhere += counts.wrong();
        toldTwice += stretch.outcomes.twice();
        if (firstFailure.isEmpty()) {
            firstFailure = stretch.outcomes.firstFailure();
        }
        if (stretch.isCut && firstFailure.isEmpty()) {
            firstFailure = stretch.label + " was not over in time";
        }
        if (stretch.isCounted) {
            countedNs += stretch.endedNs - stretch.beganNs;
            closed = closed.plus(counts);
            service.add(services);
            sendDelay.add(delays);
            error.add(errors);
            if (isEach) {
                tellSecond(stretch.responses, counts);
            }
        } else {
            all.subtract(stretch.responses);
        }
        events.accept(new Event.Step(
                trialId,
                stretches++,
                stretch.label,
                stretch.from,
                stretch.to,
                stretch.isCounted,
                stretch.isCut,
                stretch.endedNs - stretch.beganNs,
                stretch.responses.getTotalCount(),
                counts.late(),
                counts.wrong(),
                counts.failed(),
                counts.notSent(),
                Encoded.of(stretch.responses),
                Encoded.of(scenarios)));
    }

    private static double sum(Histogram histogram) {
        return histogram.getTotalCount() == 0 ? 0 : histogram.getMean() * histogram.getTotalCount();
    }

    /**
     * Little's law of requests that come whether or not earlier ones are done: rate × mean time, from the
     * distributions, over the mean number in the system, from a count of its own. 1 when all is well, and where no
     * request was ever in the system.
     */
    double littlesLaw() {
        return inSystemNs > 0 ? recordedNs / inSystemNs : 1;
    }

    /** Notes how many were under way when something first went wrong. */
    void watch(Outcomes.Counts counts, int underWay) {
        if (usersAtFirstFailure == 0 && counts.sum() > 0) {
            usersAtFirstFailure = underWay;
        }
    }

    int usersAtFirstFailure() {
        return usersAtFirstFailure;
    }

    Histogram responses() {
        return all;
    }

    Histogram service() {
        return service;
    }

    Histogram sendDelay() {
        return sendDelay;
    }

    Histogram error() {
        return error;
    }

    /** Of the counted stretches, together. */
    long countedNs() {
        return countedNs;
    }

    /** In stretches that do not count too: a wrong reply is never passed over. */
    long wrongAnywhere() {
        return wrongAnywhere;
    }

    long toldTwice() {
        return toldTwice;
    }

    String firstFailure() {
        return firstFailure;
    }
}
