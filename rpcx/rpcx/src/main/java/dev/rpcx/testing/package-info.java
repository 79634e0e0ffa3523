/**
 * What the tests of a service that uses RPCX may need. Starting point: {@link dev.rpcx.testing.FaultyLink}, a bad network in a box; its
 * {@link dev.rpcx.testing.Faults} do without a socket too, by {@code Client.builder().inProcess().faults(…)}.
 *
 * <p>Threads: each says. Never imports anything but the JDK.
 */
@NullMarked
package dev.rpcx.testing;

import org.jspecify.annotations.NullMarked;
