/**
 * Apache Thrift: the binary protocol over plain TCP with generated clients and a generated processor, a connection for
 * each call under way.
 *
 * <p>Starting point: {@link dev.parley.transport.thrift.ThriftProvider}. The interface stands in
 * {@code src/main/thrift}, what the compiler made of it below {@code generated}. It is that of one contract,
 * {@code messages}: decision 25 says why. A connection has a thread of its own at the server, and handlers run on it.
 * This package imports the SPI and libthrift, and no other transport.
 */
@NullMarked
package dev.parley.transport.thrift;

import org.jspecify.annotations.NullMarked;
