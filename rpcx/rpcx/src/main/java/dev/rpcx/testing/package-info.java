/**
 * Simulates a bad network for tests of services that use RPCX. Start with {@link dev.rpcx.testing.FaultyLink}. Its
 * {@link dev.rpcx.testing.Faults} also work without a socket, by {@code Client.builder().inProcess().faults(…)}.
 *
 * <p>The package has two layers, as {@code dev.rpcx} has.
 *
 * <ul>
 *   <li>{@link dev.rpcx.testing.Faults} belongs to the vocabulary, that is, the types that users and internal packages
 *       share. It says which fraction of the frames gets which fault, and chooses these frames by random numbers from
 *       its seed. It refers to nothing but the JDK.
 *   <li>{@link dev.rpcx.testing.FaultyLink} is a door, that is, a class that users start and that uses internal
 *       packages. It stands between a client and a server, and passes frames on from socket to socket. Besides the JDK
 *       it imports only Netty's buffers and {@code dev.rpcx.internal.wire.FaultyFrames}, which applies the faults. In a
 *       client with faults, {@code dev.rpcx.internal.wire.FaultyPipe} takes the place of the link.
 * </ul>
 *
 * <p>Threads: each class says which threads it uses.
 */
@NullMarked
package dev.rpcx.testing;

import org.jspecify.annotations.NullMarked;
