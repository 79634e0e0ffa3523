/**
 * The Maven plugin {@code rpcx}: {@code mvn rpcx:lock} writes the lock file of a project's services, and the goal
 * {@code check}, which a build runs before its tests, compares the compiled services with that file. Starting points:
 * {@code LockGoal} and {@code CheckGoal}.
 *
 * <p>The goals run the commands of {@link dev.rpcx.tool.SchemaTool} within Maven's process, on the thread that runs the
 * goal. They load the project's classes from the compile class path, and initialize none of them. This package imports
 * Maven and {@code dev.rpcx.tool}.
 */
@NullMarked
package dev.rpcx.maven;

import org.jspecify.annotations.NullMarked;
