/** What one step costs inside one JVM, by JMH: {@code rpcx/rpcx-bench/jmh}. Whole calls between processes are {@link dev.rpcx.bench.Bench}'s. */
@NullMarked
package dev.rpcx.bench.jmh;

import org.jspecify.annotations.NullMarked;
