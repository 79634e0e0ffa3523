/**
 * Simulates a bad network for the tests of services that use RPCX. Starting point: {@link dev.rpcx.testing.FaultyLink}.
 * Its {@link dev.rpcx.testing.Faults} also work without a socket, by {@code Client.builder().inProcess().faults(…)}.
 *
 * <p>The package has two layers, as {@code dev.rpcx} has.
 *
 * <ul>
 *   <li>{@link dev.rpcx.testing.Faults} belongs to the vocabulary, and refers to nothing but the JDK. It says what
 *       fraction of the frames gets which fault, and chooses these frames by random numbers from its seed.
 *   <li>{@link dev.rpcx.testing.FaultyLink} is a door: it stands between a client and a server and passes frames on
 *       from socket to socket. Besides the JDK it imports {@code dev.rpcx.internal.wire.FaultyFrames}, which applies
 *       the faults, and Netty's buffers, and nothing else. Within a client {@code dev.rpcx.internal.wire.FaultyPipe}
 *       does the same without a link.
 * </ul>
 *
 * <p>Threads: each class says which threads it uses.
 */
@NullMarked
package dev.rpcx.testing;

import org.jspecify.annotations.NullMarked;
