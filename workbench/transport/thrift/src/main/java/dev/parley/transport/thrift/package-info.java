/**
 * Apache Thrift: the binary protocol over plain TCP with generated clients and a generated processor, a connection for each call under way.
 *
 * <p>Starting point: {@link dev.parley.transport.thrift.ThriftProvider}. The interfaces, one a contract, stand in {@code src/main/thrift},
 * what the compiler made of them below {@code generated}. A connection has a thread of its own at the server, and handlers run on it.
 * Imports the SPI and libthrift; no other transport.
 */
@NullMarked
package dev.parley.transport.thrift;

import org.jspecify.annotations.NullMarked;
