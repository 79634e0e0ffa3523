/**
 * Measures what one step costs inside one JVM, with JMH: {@code rpcx/rpcx-bench/jmh}. Whole calls between processes are
 * measured by {@link dev.rpcx.bench.Bench}.
 */
@NullMarked
package dev.rpcx.bench.jmh;

import org.jspecify.annotations.NullMarked;
