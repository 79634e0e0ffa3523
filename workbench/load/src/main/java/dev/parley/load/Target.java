package dev.parley.load;

import dev.parley.spi.CallException;
import java.util.concurrent.CompletableFuture;

/** What the engine sends to: knows how to ask and how to tell a right answer, not over what. Thread-safe. */
interface Target {
    /**
     * Calls and waits.
     *
     * @return whether the answer was right
     * @throws CallException if there was none
     */
    boolean call(long index);

    /** Calls without waiting; ends with whether the answer was right, or with a {@link CallException}. */
    CompletableFuture<Boolean> send(long index);
}
