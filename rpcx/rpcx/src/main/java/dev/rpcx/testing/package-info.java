/**
 * What the tests of a service that uses RPCX may need. Starting point: {@link dev.rpcx.testing.FaultyLink}, a simulated
 * bad network. Its {@link dev.rpcx.testing.Faults} also work without a socket, by
 * {@code Client.builder().inProcess().faults(…)}.
 *
 * <p>Threads: each class says which threads it uses. Besides the JDK, this package imports {@code FaultyFrames} and
 * Netty's buffers, and nothing else.
 */
@NullMarked
package dev.rpcx.testing;

import org.jspecify.annotations.NullMarked;
