/**
 * This package has what every room behind it in the list below may use: checks of arguments, numbers of the wire,
 * texts of failures, and helpers for threads.
 *
 * <p>This package itself uses the JDK, Netty's buffers and {@code dev.rpcx.codec}, and must not know {@code dev.rpcx}
 * or another room behind it.
 *
 * <ul>
 *   <li>What users give: {@link Given} checks the arguments of the API; {@link FrozenMap} is a map that nobody changes
 *       and that need not be copied.
 *   <li>Bytes: {@link Varint} reads and writes Protobuf's numbers; {@link ProtoFields} the fields of the wire's own
 *       messages; {@link WireFault} is thrown where the peer breaks a rule of the wire, and ends the connection.
 *   <li>Failures: {@link ThrowableText} takes texts from exceptions of foreign code; {@link RateLimitedLog} logs once a
 *       minute; {@link CallbackFailures} logs what callbacks of users throw; {@link MemoryReserve} keeps the memory
 *       that is needed to tell callers that their calls are over when the heap is full.
 *   <li>Threads: {@link ThreadTools} reserves stack, interrupts, reports what nobody catches, and prepares classes that
 *       a thread at the end of its stack or memory will need.
 * </ul>
 *
 * <p><b>The rooms.</b> Each entry of this list is a room. It may use the rooms that stand before it in the list, and
 * knows none behind it; {@code RoomsTest} checks that, and names the exceptions.
 * {@code docs/decisions/0023-rooms-have-an-order.md} says why, and {@code ARCHITECTURE.md} explains the words.
 *
 * <ol>
 *   <li>{@code dev.rpcx.schema} and {@code dev.rpcx.internal.schema}: Java types as Protobuf messages.
 *   <li>{@code dev.rpcx.codec}: the bytes of these messages.
 *   <li>{@code dev.rpcx.internal}: this package.
 *   <li>{@code dev.rpcx}, without its doors: the vocabulary of users. {@code dev.rpcx.testing}: faults of a network.
 *   <li>{@code dev.rpcx.internal.ledger}: counts the memory and the other resources that peers make this side hold, and
 *       refuses what is too much.
 *   <li>{@code dev.rpcx.internal.io}: event loops, sockets, TLS and host names; who reads a socket, and who writes.
 *   <li>{@code dev.rpcx.internal.wire}: frames and messages of both wires, and connections that either side extends.
 *   <li>{@code dev.rpcx.internal.call}: what a call is on either side: context, future, streams and their credit.
 *   <li>{@code dev.rpcx.internal.discovery}: which instances a service has.
 *   <li>{@code dev.rpcx.internal.client}: from a proxy to a connection and back; choice of an instance, retries, slots,
 *       the deadline of a caller, and how calls end when their connection is lost.
 *   <li>{@code dev.rpcx.internal.server}: from a connection to a handler and back; admission, worker threads, the
 *       deadline of a handler. It knows neither {@code client} nor {@code discovery}, and {@code client} does not know
 *       it.
 *   <li>The doors in {@code dev.rpcx} and {@code dev.rpcx.testing}, which no room knows: {@code CallLog},
 *       {@code Client}, {@code RegistryServer}, {@code Server}, {@code Tls}, {@code Tokens}, {@code FaultyLink}. Beside
 *       them stand {@code dev.rpcx.processor} and {@code dev.rpcx.tool}, which run at build time.
 * </ol>
 */
@NullMarked
package dev.rpcx.internal;

import org.jspecify.annotations.NullMarked;
