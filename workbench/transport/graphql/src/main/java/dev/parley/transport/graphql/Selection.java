package dev.parley.transport.graphql;

/** Which fields of a reply are asked for: the client's choice in GraphQL. */
enum Selection {
    ALL,
    /** Those that the client reads; the rest is empty in the record. */
    READ
}
