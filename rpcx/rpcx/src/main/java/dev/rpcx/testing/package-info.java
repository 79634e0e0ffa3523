/**
 * What the tests of a service that uses RPCX may need. Starting point: {@link dev.rpcx.testing.FaultyLink}, a bad network in a box; its
 * {@link dev.rpcx.testing.Faults} do without a socket too, by {@code Client.builder().inProcess().faults(…)}.
 *
 * <p>Threads: each says. Beside the JDK it imports {@code FaultyFrames} and Netty's buffers, and nothing else.
 */
@NullMarked
package dev.rpcx.testing;

import org.jspecify.annotations.NullMarked;
