package dev.parley.protocol;

import dev.parley.model.HistogramRow;
import dev.parley.model.SecondRow;
import java.util.List;

/** What the load generator tells. A row that the store keeps is told as it is. */
public sealed interface Event extends Message {
    record Done() implements Event {}

    /**
     * The service answered rightly.
     *
     * @param firstCallNs of the call that succeeded, from its start to its reply
     * @param attempts calls it took, that one included
     */
    record Ready(String asked, long firstCallNs, int attempts) implements Event {}

    /** @param payloadOut bytes of one encoded request, {@code payloadBack} of its reply */
    record Counted(int calls, long payloadOut, long payloadBack) implements Event {}

    /** Which part of a trial is under way. */
    enum Phase {
        WARM_UP,
        WINDOW,
        /** The window is over; what was sent in it is waited for. Told once, with the window's length. */
        LAST_REPLIES
    }

    /**
     * A trial as it goes, twice a second; the first one of the window comes at its very start.
     *
     * @param elapsedMs since the phase began
     * @param perSecond right replies within the limit over the last interval
     * @param errors all other outcomes so far in this phase
     */
    record Progress(int trialId, Phase phase, long elapsedMs, double perSecond, double p99Ms, long errors, int inFlight)
            implements Event {}

    /**
     * What processes use counts from here on: a stretch that counts is about to begin. Told once, in the window; after
     * the first round of rounds, which does not count.
     *
     * @param answered replies so far in this trial, right or wrong, those of its warm-up and of its logins too
     */
    record ProbeBegins(int trialId, long answered) implements Event {}

    /**
     * What processes use counts until here. Told once: when the window is over, or under an open load, whose replies
     * count after it too, when all of them have come.
     *
     * @param answered replies so far, as at {@link ProbeBegins}: the difference came in between
     */
    record ProbeEnds(int trialId, long answered) implements Event {}

    /** One second of warm-up or window, or one counted step of a counted load. */
    record Second(SecondRow row) implements Event {}

    /**
     * One part of a load's window: all of it for most loads, a step of a staircase, an iteration of a burst, a round, a
     * try of a search.
     *
     * @param step from 0
     * @param label in words, unique within the trial
     * @param from clients or arrivals a second at its beginning
     * @param to the same at its end
     * @param isCounted whether the trial's own figures have it in them
     * @param isCut whether it was ended because it took too long
     * @param scenarioTimes from a user's arrival to the last reply of the last iteration; empty where a scenario is a
     *     single request
     */
    record Step(
            int trialId,
            int step,
            String label,
            double from,
            double to,
            boolean isCounted,
            boolean isCut,
            long lengthNs,
            long replied,
            long late,
            long wrong,
            long failed,
            long notSent,
            byte[] responseTimes,
            byte[] scenarioTimes)
            implements Event {}

    /**
     * What the same clients asked the same service in this trial outside of all of its steps: the warm-up, and users
     * who log in.
     *
     * @param sent requests
     * @param answered those of them that had a reply, right or wrong
     */
    record Uncounted(int trialId, long sent, long answered) implements Event {}

    /** One distribution of the window, as the clients saw it. */
    record Distribution(HistogramRow row) implements Event {}

    /**
     * The trial is over and told whole.
     *
     * @param windowNs the time that the trial's rates are counts over: of a closed load from the window's start to its
     *     end, of an open one until the last right reply if that comes later, of a counted load the sum of all counted
     *     steps
     * @param warmUpMs how long the warm-up took
     * @param isStable whether latency was stable at its end
     * @param cpuShare of the generator over the window, 1 being one core
     * @param latenessP99Ns actual minus intended send time; 0 for closed loads
     * @param littlesLaw rate × mean time in the system, however requests ended, over the clients of a load that keeps
     *     up a number of them, or over the mean number of requests in the system, counted on its own; 1 when all is
     *     well, and for rounds
     * @param usersAtFirstFailure requests or users under way when the first outcome that was no success was seen; 0 if
     *     none
     * @param highestRate of a search: requests a second at which its latency was met; 0 for other loads
     * @param voidReasons why the generator itself would not believe these figures
     * @param firstFailure what the first failed request said; empty when none failed
     */
    record Finished(
            int trialId,
            long windowNs,
            long warmUpMs,
            boolean isStable,
            long replied,
            long late,
            long wrong,
            long failed,
            long notSent,
            double cpuShare,
            long latenessP50Ns,
            long latenessP99Ns,
            double littlesLaw,
            int usersAtFirstFailure,
            double highestRate,
            List<String> voidReasons,
            String firstFailure)
            implements Event {
        /** Requests that were due in the window. */
        public long due() {
            return replied + late + wrong + failed + notSent;
        }
    }

    /**
     * @param perSecond right replies a second of the server that does nothing: no technology's figure can be believed
     *     near it
     */
    record Ceiling(double perSecond) implements Event {}

    /** The command could not be carried out. */
    record Failed(String message) implements Event {}
}
