/**
 * RSocket request/response over TCP: the operation's name as metadata, JSON as data, one connection a neighbour.
 *
 * <p>Starting point: {@link dev.parley.transport.rsocket.RSocketProvider}. Frames are read on Netty's event loops, handlers run on a bounded
 * elastic scheduler, where Reactor's documentation puts blocking code. Imports the SPI, the JSON encoding, rsocket-java; no other transport.
 */
@NullMarked
package dev.parley.transport.rsocket;

import org.jspecify.annotations.NullMarked;
