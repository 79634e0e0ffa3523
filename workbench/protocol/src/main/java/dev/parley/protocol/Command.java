package dev.parley.protocol;

/** What the load generator is told. Answered in order; see each command's event. */
public sealed interface Command extends Message {
    /**
     * The technology, topology and work of all that follows. Answered by {@link Event.Done}.
     *
     * @param seed of the requests
     */
    record Use(String transport, String topology, String work, long seed) implements Command {}

    /**
     * Calls one service, every few milliseconds, until it answers rightly. Answered by {@link Event.Ready}, which
     * tells of the last call.
     *
     * @param location as {@code spi.Location} is written
     * @param asked the service's name
     * @param message as {@link dev.parley.model.MessageSpec#parse} reads it
     * @param times right answers in a row
     */
    record AwaitReady(String location, String asked, String message, int times, long timeoutMs) implements Command {}

    /**
     * Sends requests to the entry service one after the other. Answered by {@link Event.Counted}. Users log in with the
     * first of these commands for a location and a message, and not again until the location is released.
     *
     * @param leastCalls that are sent however long they take
     * @param mostCalls that are sent where {@code withinMs} is enough for them
     */
    record Count(String location, String message, int leastCalls, int mostCalls, long withinMs) implements Command {}

    /**
     * Closes the client of a location that will not be asked again, so that it does not look for its server in the
     * middle of a trial. Answered by {@link Event.Done}.
     */
    record Release(String location) implements Command {}

    /**
     * Warm-up, then the window. Answered by {@link Event.Progress} now and then, {@link Event.Second}, {@link
     * Event.Step}, {@link Event.Uncounted} and {@link Event.Distribution}, and at last {@link Event.Finished}.
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
     * What the generator itself reaches with closed clients against a server that does nothing, at {@code port} of this
     * machine. Answered by {@link Event.Ceiling}.
     */
    record Ceiling(int port, int clients, long warmUpLeastMs, long warmUpMostMs, long windowMs) implements Command {}
}
