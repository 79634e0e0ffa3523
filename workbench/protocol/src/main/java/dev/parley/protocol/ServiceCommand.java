package dev.parley.protocol;

/** What a service is told. Answered in order; see each command's event. */
public sealed interface ServiceCommand extends Message {
    /**
     * A window begins: the times of calls to neighbours are kept anew from here on. Not answered.
     *
     * @param window its name in the service's call log
     */
    record ResetHops(String window) implements ServiceCommand {}

    /**
     * Asks for the times of calls to neighbours since the last {@link ResetHops}. The window that it began ends.
     * Answered by {@link ServiceEvent.Hops}.
     *
     * @param trialId of the rows
     */
    record TellHops(int trialId) implements ServiceCommand {}

    /** Asks for the counts of the service's work. Answered by {@link ServiceEvent.Served}. */
    record TellServed() implements ServiceCommand {}
}
