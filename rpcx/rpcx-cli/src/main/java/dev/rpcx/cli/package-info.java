/**
 * {@code rpcx}: what a server publishes, whether it is well, a call with JSON, and all that {@link dev.rpcx.tool.SchemaTool} does. Starting
 * point: {@link dev.rpcx.cli.CommandLine}. Imports RPCX and Jackson.
 */
@NullMarked
package dev.rpcx.cli;

import org.jspecify.annotations.NullMarked;
