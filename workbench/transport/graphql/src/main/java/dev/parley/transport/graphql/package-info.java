/**
 * GraphQL over HTTP: a schema made from the contract's records, executed by graphql-java; one {@code POST /graphql} a call.
 *
 * <p>Starting points: {@link dev.parley.transport.graphql.GraphqlProvider}, {@link dev.parley.transport.graphql.ContractSchema}. Handlers
 * run on Helidon's virtual thread of the connection. Imports the SPI, graphql-java, Helidon and Jackson; no other transport.
 */
@NullMarked
package dev.parley.transport.graphql;

import org.jspecify.annotations.NullMarked;
