/**
 * The command line for a build: lock the numbers, check a change, export a {@code .proto}. Starting point: {@link dev.rpcx.tool.SchemaTool}.
 * Never runs in a service.
 */
@NullMarked
package dev.rpcx.tool;

import org.jspecify.annotations.NullMarked;
