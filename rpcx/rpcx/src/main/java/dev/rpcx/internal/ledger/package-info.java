/**
 * Counts what peers make a server or a client hold, resource by resource, and refuses what is beyond their shares.
 *
 * <p>This package uses {@code dev.rpcx.codec}, {@code dev.rpcx.internal}, and of Netty only the event loop. It must not
 * know what a call, a frame or a socket is: a class that holds something charges it here and releases it. The packages
 * {@code io}, {@code wire}, {@code call}, {@code client} and {@code server} all have such classes.
 *
 * <ul>
 *   <li>What is counted, and by whom: {@link Resource} names the kinds; {@link Ledger} counts all that one server or
 *       client holds, has the limits, decides in {@code tryCharge} whether there is room, and says which connections
 *       count as one address; {@link Account} counts what one connection holds; {@link AddressGroups} gives each of
 *       these addresses groups of its own, so that an {@code AdmissionLimit} treats callers of different addresses
 *       apart.
 *   <li>How it is charged: {@link Charge} is what one owner, for example a call or a connection, holds of one kind;
 *       {@link UnchargedAllowance} is what a small call may hold without a charge.
 *   <li>What cannot be refused, because a peer delays it: {@link Claim} is the charge for a frame that has begun to
 *       arrive, or for bytes that the peer does not read; {@link Claims} chooses which connection ends if the pool is
 *       full.
 *   <li>What outlasts its owner: {@link LingeringCharge} stays with a handler's future after the call has been given
 *       up; {@link OrphanedWork} counts the handlers and threads of connections that have gone.
 * </ul>
 *
 * <p>If there is no room for a charge, {@code add} or {@code tryCharge} returns false, and the class that wanted the
 * charge refuses what it was for, as OVERLOADED. At a server, these classes are {@code ServerConnection},
 * {@code ServerCall} and {@code ClassicServerConnection}; at a client, they are {@code ClientCall},
 * {@code ClassicClientConnection} and {@code Route}. The limits are in {@code Ledger}: {@code ofHeap} sets those of the
 * pools of bytes, as parts of the heap. One connection may hold as many bytes as are still free in the pool, and no
 * more than a fixed limit for each connection, which {@code Ledger.ofConnection} sets; all connections of an address
 * together may hold twice as many as are free. What is claimed is the exception: one connection may fill the pool of a
 * claim, until others need room. A connection that is one too many gets no account: {@code Ledger.open} returns null,
 * and {@code ServerCore} closes the connection.
 *
 * <p>This package starts no thread. A charge belongs to the thread that owns the charge's owner: mostly the
 * connection's event loop. A claim belongs to the event loop of its connection. The other classes are thread-safe.
 */
@NullMarked
package dev.rpcx.internal.ledger;

import org.jspecify.annotations.NullMarked;
