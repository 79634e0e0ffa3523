package dev.parley.spi;

/**
 * What a transport's server calls for each request. A handler blocks while it calls neighbours, so a transport runs it
 * where its documentation says that blocking handlers belong, never on an event loop.
 */
@FunctionalInterface
public interface Handler {
    /** @throws CallException with any code; the transport carries code and message to the caller in its own way */
    <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request);
}
