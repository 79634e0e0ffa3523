/**
 * Compares the speed of RPCX with that of its peers, in one command: each peer carries the same echo, its client and
 * its server have a process each, and the rounds of the peers are interleaved.
 *
 * <p>Starting point: {@link dev.rpcx.bench.Bench}. Each peer is set up as its documentation says, and compares what
 * comes back with what was sent. Figures are valid for one machine and one run only; elsewhere only their ratios can be
 * used.
 */
@NullMarked
package dev.rpcx.bench;

import org.jspecify.annotations.NullMarked;
