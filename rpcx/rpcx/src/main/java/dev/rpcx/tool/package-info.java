/**
 * The command-line tool that builds run. It writes lock files, which keep the Protobuf numbers of members from release
 * to release, checks whether old and new versions of a service can read each other, and exports a {@code .proto}.
 * Starting point: {@code SchemaTool}. The tool never runs in a service.
 *
 * <p>This package uses the annotations of {@code dev.rpcx} and the errors of {@code dev.rpcx.schema}. It takes the
 * rules from {@code internal.schema}. From {@code internal.call} it takes the class that finds published methods and
 * the class that knows which streams are refused. It must know neither a codec nor a connection: it loads the classes
 * of services, but calls none of their methods.
 *
 * <ul>
 *   <li>Services: {@link dev.rpcx.tool.ServiceClasses} loads classes by their names or by their folders;
 *       {@link dev.rpcx.tool.PublishedService} is a service as one class or interface declares it, with its name, and
 *       the request and the reply of each method; {@link dev.rpcx.tool.Services} joins the classes and interfaces of
 *       one service.
 *   <li>Commands: {@link dev.rpcx.tool.SchemaTool} compares the services with the lock file by {@code LockFile} and
 *       {@code Compatibility}. It writes the lock file as a whole or not at all, exports services by {@code ProtoFile},
 *       prints breaks, and decides the exit code. {@link dev.rpcx.tool.Answers} asks whether a member has been renamed,
 *       or takes the answer from the options.
 *   <li>Notes: {@link dev.rpcx.tool.ForeignTypes} looks for types from elsewhere that no lock file there keeps;
 *       {@link dev.rpcx.tool.Notes} prints each note once.
 * </ul>
 *
 * <p>Threads: a command runs on the thread that calls it. Several processes are allowed to use one lock file at the
 * same time. While one process writes the lock file, another process that wants to write the file gets an error.
 */
@NullMarked
package dev.rpcx.tool;

import org.jspecify.annotations.NullMarked;
