/**
 * Command line for a build: it locks the numbers, checks a change, and exports a {@code .proto}. Starting point:
 * {@link dev.rpcx.tool.SchemaTool}. It never runs in a service.
 */
@NullMarked
package dev.rpcx.tool;

import org.jspecify.annotations.NullMarked;
