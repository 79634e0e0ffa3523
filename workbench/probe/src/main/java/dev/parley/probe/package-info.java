/**
 * What is read from outside while services run: processor time and memory of a process, bytes on a connection, facts and moods of the
 * machine.
 *
 * <p>Starting points: {@link dev.parley.probe.ProcessProbe}, {@link dev.parley.probe.ByteRelay}, {@link dev.parley.probe.MachineFacts}.
 * Nothing here starts a process. Reads {@code /proc} on Linux and falls back to what the JDK tells elsewhere. Imports the model.
 */
@NullMarked
package dev.parley.probe;

import org.jspecify.annotations.NullMarked;
