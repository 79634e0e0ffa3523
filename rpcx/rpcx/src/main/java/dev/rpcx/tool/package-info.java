/**
 * Command line for a build: it locks the numbers, checks a change, and exports a {@code .proto}. Starting point:
 * {@code SchemaTool}. It never runs in a service.
 *
 * <p>It uses the annotations of {@code dev.rpcx}, the errors of {@code dev.rpcx.schema}, {@code internal.schema}, which
 * has the rules, and of {@code internal.call} the class that finds published methods. It must know neither a codec nor
 * a connection: it loads the classes of services, and calls none of them.
 *
 * <ul>
 *   <li>From classes to calls: {@link dev.rpcx.tool.PublishedService} is a service as one class or interface publishes
 *       it: its name, and the request and the reply of each method.
 *   <li>The commands: {@link dev.rpcx.tool.SchemaTool} joins the types of one service, compares them with the lock by
 *       {@code Lock} and {@code Compatibility}, writes the lock as a whole or not at all, exports the types by
 *       {@code ProtoFile}, prints breaks and notes, and decides the exit code.
 * </ul>
 *
 * <p>Threads: a command runs on the thread that calls it. Processes may run beside each other on one lock file: a
 * second one that would write it is refused.
 */
@NullMarked
package dev.rpcx.tool;

import org.jspecify.annotations.NullMarked;
