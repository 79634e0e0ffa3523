/**
 * Reads figures for benchmarks while processes run, from outside these processes: the processor time and the memory of
 * a process, the bytes on a connection, and facts about the machine. A relay that counts bytes can also trouble its
 * connections, as a bad network does.
 *
 * <p>Starting points: {@link dev.rpcx.probe.ProcessProbe}, {@link dev.rpcx.probe.ByteRelay} and
 * {@link dev.rpcx.probe.MachineFacts}. Nothing in this package starts a process. Most figures come from {@code /proc},
 * which only Linux has. On other systems the JDK gives the processor time of a process and some facts about the
 * machine. {@code ByteRelay} works on virtual threads of its own, and everything else works on the caller's thread. The
 * package imports only the JDK and the annotations of JSpecify.
 */
@NullMarked
package dev.rpcx.probe;

import org.jspecify.annotations.NullMarked;
