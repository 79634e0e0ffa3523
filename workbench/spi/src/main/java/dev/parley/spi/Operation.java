package dev.parley.spi;

import java.util.List;

/**
 * One thing a service can be asked, with the records that are sent and come back.
 *
 * @param name in lower camel case; the method name in gRPC and RPCX, the field name in GraphQL, the last part of the
 *     REST path
 * @param request a record; an empty record for a call that sends nothing
 * @param reply a record
 * @param read what a client of the work reads of the reply, as dotted names of components; empty for all of it.
 *     Technologies that can do so leave the rest out
 */
public record Operation<Q extends Record, R extends Record>(
        String name, Kind kind, Class<Q> request, Class<R> reply, List<String> read) {
    public Operation {
        read = List.copyOf(read);
    }

    /** An operation whose client reads the whole reply. */
    public Operation(String name, Kind kind, Class<Q> request, Class<R> reply) {
        this(name, kind, request, reply, List.of());
    }

    /** Whether the operation changes something: decides the HTTP method and GraphQL's query or mutation. */
    public enum Kind {
        /** Changes nothing and sends no body: GET. */
        FETCH,
        /** Changes nothing, sends a body: POST, a GraphQL query. */
        QUERY,
        /** Changes something: POST, a GraphQL mutation. */
        MUTATION
    }
}
