/**
 * The moods of the machine while services run: processor time stolen by its host, pages swapped, cores throttled. Processes, bytes and
 * facts of the machine are {@code dev.rpcx.probe}'s.
 *
 * <p>Starting point: {@link dev.parley.probe.MachineMood}. Nothing here starts a process. Reads {@code /proc}; where that is not there, the
 * machine behaves.
 */
@NullMarked
package dev.parley.probe;

import org.jspecify.annotations.NullMarked;
