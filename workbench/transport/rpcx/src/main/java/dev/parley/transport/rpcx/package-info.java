/**
 * RPCX as one technology among many: its public API in the set-up that a user gets by default, or on the wire of the
 * paper, with annotated interfaces of each contract.
 *
 * <p>Starting point: {@link dev.parley.transport.rpcx.RpcxTransports}, found with {@link java.util.ServiceLoader}.
 * Imports the SPI and RPCX.
 */
@NullMarked
package dev.parley.transport.rpcx;

import org.jspecify.annotations.NullMarked;
