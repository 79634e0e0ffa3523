package dev.parley.load;

import dev.parley.spi.CallException;
import org.jspecify.annotations.Nullable;

/** What the engine sends to: knows how to ask and how to tell a right answer, not over what. Thread-safe. */
interface Target extends AutoCloseable {
    /** Is told how a request ended, on any thread. */
    interface Asker {
        /** @param failure why no answer will come; null where one came */
        void ended(boolean isRight, @Nullable Throwable failure);
    }

    /** Requests of one scenario. */
    default int requests() {
        return 1;
    }

    /**
     * Calls and waits.
     *
     * @param place in the scenario, from 0
     * @param index of the scenario: the same for all of its requests
     * @return whether the answer was right
     * @throws CallException if there was none
     */
    boolean call(int place, long index);

    /** Calls without waiting. */
    void send(int place, long index, Asker asker);

    /** Requests that it made on its own before those that it was asked for, as users who log in. */
    default long entering() {
        return 0;
    }

    /** Those of {@link #entering()} that were answered. */
    default long entered() {
        return 0;
    }

    /** The same service over a client of its own, which closing ends. */
    default Target ownClient() {
        return this;
    }

    @Override
    default void close() {}
}
