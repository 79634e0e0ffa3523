/**
 * The command {@code rpcx}: it lists what a server publishes, checks whether a server is healthy, makes a call with
 * JSON, and does all that {@link dev.rpcx.tool.SchemaTool} does. Starting point: {@link dev.rpcx.cli.Rpcx}.
 * Imports RPCX, picocli, Jackson, and Netty for its buffers.
 */
@NullMarked
package dev.rpcx.cli;

import org.jspecify.annotations.NullMarked;
