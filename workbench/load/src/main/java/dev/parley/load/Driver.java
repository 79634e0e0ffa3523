package dev.parley.load;

/**
 * Sends a load's requests to a target for as long as it is told, each into the outcomes of the stretch it falls due in.
 */
interface Driver extends AutoCloseable {
    /** From now on requests belong to this stretch. Sets when it began. */
    void begin(Stretch stretch);

    /** True once all of a stretch's work is done, of a stretch that says itself when that is. */
    boolean isDone();

    /** When that was; the moment itself, not that of asking. */
    long doneNs();

    /** Requests or users sent and not yet ended. */
    int inFlight();

    /** Sends no more, but for what is due already. */
    void stop();

    /** True once every request sent has ended. */
    boolean isIdle();

    @Override
    void close();
}
