/**
 * What the machine does to a measurement while services run: processor time stolen by its host, pages swapped, cores
 * throttled. {@code dev.rpcx.probe} reads processes, bytes and facts of the machine.
 *
 * <p>Starting point: {@link dev.parley.probe.MachineMood}. Nothing here starts a process. It reads {@code /proc}; where
 * there is none, there are no complaints.
 */
@NullMarked
package dev.parley.probe;

import org.jspecify.annotations.NullMarked;
