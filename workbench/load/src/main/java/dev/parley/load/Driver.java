package dev.parley.load;

/** Sends a load's requests to a target for as long as it is told, each into the outcomes of the part it falls due in. */
interface Driver extends AutoCloseable {
    /** From now on requests belong to this part. Sets when it began. */
    void begin(Part part);

    /** True once all of a part's work is done, of a part that says itself when that is. */
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
