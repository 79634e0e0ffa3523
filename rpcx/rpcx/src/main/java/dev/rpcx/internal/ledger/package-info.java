/**
 * Counts what peers make a server or a client hold, resource by resource, and refuses what is beyond their shares.
 *
 * <p>It uses {@code dev.rpcx.codec}, {@code dev.rpcx.internal} and of Netty the event loop alone. It must not know what
 * a call, a frame or a socket is: those who hold something charge it here and release it. {@code io}, {@code wire},
 * {@code call}, {@code client} and {@code server} all do.
 *
 * <ul>
 *   <li>What is counted, and by whom: {@link Resource} names the kinds; {@link Ledger} is all that one server or client
 *       holds: it has the limits, and {@code tryCharge} decides whether there is room; {@link Account} is the part of
 *       one connection; {@link AddressGroups} puts connections into groups by their addresses, for what a server learns
 *       of its callers.
 *   <li>How it is charged: {@link Charge} is what one owner holds of one kind, a call or a connection say;
 *       {@link UnchargedAllowance} is what a small call may hold without a charge.
 *   <li>What a peer delays, so that nothing can be refused: {@link Claim} is a begun frame, or bytes that the peer does
 *       not read; {@link Claims} chooses whose connection ends where the pool is full.
 *   <li>What outlasts its owner: {@link LingeringCharge} stays with a handler's future after the call has been given
 *       up; {@link OrphanedWork} counts handlers and threads that connections have left behind.
 * </ul>
 *
 * <p>A request for too much memory is refused by the class that wanted the charge, as OVERLOADED, when {@code add} or
 * {@code tryCharge} returns false: at a server {@code ServerConnection}, {@code ServerCall} and
 * {@code ClassicServerConnection}, at a client {@code ClientCall}, {@code ClassicClientConnection} and {@code Route}.
 * How much is too much is said here, in {@code Ledger}: the limits of bytes are shares of the heap, and one connection
 * may hold as many bytes as are still free in the pool; all connections of an address together may hold twice as many
 * as are still free. A connection too many gets no account: {@code Ledger.open} returns null, and {@code ServerCore}
 * closes it.
 *
 * <p>No thread runs here. A charge belongs to the thread that owns its owner, mostly the connection's event loop; a
 * claim belongs to that loop; the other classes are thread-safe.
 */
@NullMarked
package dev.rpcx.internal.ledger;

import org.jspecify.annotations.NullMarked;
