/**
 * What is read from outside while processes run, for benchmarks: processor time and memory of a process, bytes on a connection, facts of
 * the machine.
 *
 * <p>Starting points: {@link dev.rpcx.probe.ProcessProbe}, {@link dev.rpcx.probe.ByteRelay}, {@link dev.rpcx.probe.MachineFacts}. Nothing
 * here starts a process. Reads {@code /proc} on Linux and falls back to what the JDK tells elsewhere. Imports nothing but the JDK.
 */
@NullMarked
package dev.rpcx.probe;

import org.jspecify.annotations.NullMarked;
