/**
 * What the tests of a service that uses RPCX may need. Starting point: {@link dev.rpcx.testing.FaultyLink}, a bad network in a box.
 *
 * <p>Threads: each says. Never imports anything but the JDK.
 */
@NullMarked
package dev.rpcx.testing;

import org.jspecify.annotations.NullMarked;
