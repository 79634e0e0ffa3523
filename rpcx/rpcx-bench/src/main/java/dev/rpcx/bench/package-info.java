/**
 * How fast RPCX is beside its peers: the same echo over each, client and server in a process of its own, interleaved rounds, one command.
 *
 * <p>Starting point: {@link dev.rpcx.bench.Bench}. Each peer is set up as its documentation says and compares what comes back with what
 * was sent. Figures belong to one machine and one run: only their ratios travel.
 */
@NullMarked
package dev.rpcx.bench;

import org.jspecify.annotations.NullMarked;
