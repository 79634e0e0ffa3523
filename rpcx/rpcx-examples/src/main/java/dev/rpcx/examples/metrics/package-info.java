/** Shows calls as metrics and traces. Start at {@link dev.rpcx.examples.metrics.Observed}. */
package dev.rpcx.examples.metrics;
