package dev.parley.load;

import com.fasterxml.jackson.annotation.JsonSubTypes;
import com.fasterxml.jackson.annotation.JsonTypeInfo;
import java.util.List;

/** What the generator tells, a line of JSON each. */
@JsonTypeInfo(use = JsonTypeInfo.Id.NAME, property = "event")
@JsonSubTypes({
    @JsonSubTypes.Type(value = Event.Done.class, name = "done"),
    @JsonSubTypes.Type(value = Event.Ready.class, name = "ready"),
    @JsonSubTypes.Type(value = Event.Counted.class, name = "counted"),
    @JsonSubTypes.Type(value = Event.Progress.class, name = "progress"),
    @JsonSubTypes.Type(value = Event.Second.class, name = "second"),
    @JsonSubTypes.Type(value = Event.Distribution.class, name = "distribution"),
    @JsonSubTypes.Type(value = Event.Finished.class, name = "finished"),
    @JsonSubTypes.Type(value = Event.Failed.class, name = "failed")
})
public sealed interface Event {
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
        WINDOW
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

    /** One second of warm-up (negative) or window: see {@link dev.parley.model.SecondRow}. */
    record Second(
            int trialId,
            int second,
            long replied,
            long late,
            long wrong,
            long failed,
            long notSent,
            byte[] responseTimes)
            implements Event {}

    /** One distribution of the window: see {@link dev.parley.model.HistogramRow}. {@code kind} is its key. */
    record Distribution(int trialId, String kind, byte[] histogram) implements Event {}

    /**
     * The trial is over and told whole.
     *
     * @param windowNs from the window's start to its end, not counting the wait for last replies
     * @param warmUpMs how long the warm-up took
     * @param isStable whether latency was stable at its end
     * @param cpuShare of the generator over the window, 1 being one core
     * @param latenessP99Ns actual minus intended send time; 0 for closed loads
     * @param littlesLaw closed loads: rate × mean latency ÷ clients, 1 when all is well; 1 for open loads
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
            List<String> voidReasons,
            String firstFailure)
            implements Event {
        /** Requests that were due in the window. */
        public long due() {
            return replied + late + wrong + failed + notSent;
        }
    }

    /** The command could not be carried out. */
    record Failed(String message) implements Event {}
}
