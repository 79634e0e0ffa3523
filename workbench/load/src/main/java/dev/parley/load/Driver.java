package dev.parley.load;

import java.util.function.BooleanSupplier;

/** Sends a load's requests to a target for as long as it is told, each into the phase's outcomes it belongs to. */
interface Driver extends AutoCloseable {
    /** From now on requests belong to {@code outcomes}. */
    void phase(Outcomes outcomes, long lengthNs);

    /** Requests sent and not yet ended. */
    int inFlight();

    /** Sends no more. */
    void stop();

    /** True once every request sent has ended. */
    BooleanSupplier isIdle();

    @Override
    void close();
}
