package dev.parley.transport.contract;

import dev.parley.spi.Handler;
import dev.parley.spi.Operation;

/** A handler from a lambda: what a test's server answers. */
public record Answering(Answer answer) implements Handler {
    @FunctionalInterface
    public interface Answer {
        Record to(Operation<?, ?> operation, Record request) throws Exception;
    }

    @Override
    public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
        try {
            return operation.reply().cast(answer.to(operation, request));
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
