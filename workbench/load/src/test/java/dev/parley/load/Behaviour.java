package dev.parley.load;

import dev.parley.spi.CallException;
import java.util.concurrent.CompletableFuture;

/** A target that answers what a function says, when its future says. */
@FunctionalInterface
interface Behaviour extends Target {
    CompletableFuture<Boolean> answer(long index);

    @Override
    default boolean call(int step, long index) {
        try {
            return answer(index).join();
        } catch (RuntimeException e) {
            throw CallException.of(e);
        }
    }

    @Override
    default void send(int step, long index, Asker asker) {
        var _ = answer(index).whenComplete((isRight, failure) -> asker.ended(failure == null && isRight, failure));
    }
}
