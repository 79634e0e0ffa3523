package dev.parley.load;

import com.fasterxml.jackson.annotation.JsonSubTypes;
import com.fasterxml.jackson.annotation.JsonTypeInfo;

/** What the generator is told, a line of JSON each. Answered in order; see each command's event. */
@JsonTypeInfo(use = JsonTypeInfo.Id.NAME, property = "command")
@JsonSubTypes({
    @JsonSubTypes.Type(value = Command.Use.class, name = "use"),
    @JsonSubTypes.Type(value = Command.AwaitReady.class, name = "await-ready"),
    @JsonSubTypes.Type(value = Command.Count.class, name = "count"),
    @JsonSubTypes.Type(value = Command.Release.class, name = "release"),
    @JsonSubTypes.Type(value = Command.RunTrial.class, name = "run-trial"),
    @JsonSubTypes.Type(value = Command.Ceiling.class, name = "ceiling")
})
public sealed interface Command {
    /**
     * The technology, topology and work of all that follows. Answered by {@link Event.Done}.
     *
     * @param seed of the requests
     */
    record Use(String transport, String topology, String work, long seed) implements Command {}

    /**
     * Calls one service, every few milliseconds, until it answers rightly. Answered by {@link Event.Ready}, which tells of the last call.
     *
     * @param location as {@link dev.parley.spi.Location#parse} reads it
     * @param asked the service's name
     * @param message as {@link dev.parley.model.MessageSpec#parse} reads it
     * @param times right answers in a row
     */
    record AwaitReady(String location, String asked, String message, int times, long timeoutMs) implements Command {}

    /**
     * Sends requests to the entry service one after the other. Answered by {@link Event.Counted}.
     *
     * @param leastCalls that are sent however long they take
     * @param mostCalls that are sent where {@code withinMs} is enough for them
     */
    record Count(String location, String message, int leastCalls, int mostCalls, long withinMs) implements Command {}

    /**
     * Closes the client of a location that will not be asked again, so that it does not look for its server in the middle of a trial.
     * Answered by {@link Event.Done}.
     */
    record Release(String location) implements Command {}

    /**
     * Warm-up, then the window. Answered by {@link Event.Progress} now and then, {@link Event.Second} and {@link Event.Distribution}, and
     * at last {@link Event.Finished}.
     */
    record RunTrial(
            int trialId,
            String location,
            String message,
            String load,
            long warmUpLeastMs,
            long warmUpMostMs,
            long windowMs,
            long limitMs,
            long callTimeoutMs,
            int inFlightMost)
            implements Command {}

    /**
     * What the generator itself reaches with closed clients against {@link EchoServer} at {@code port} of this machine. Answered by
     * {@link Event.Ceiling}.
     */
    record Ceiling(int port, int clients, long warmUpLeastMs, long warmUpMostMs, long windowMs) implements Command {}
}
