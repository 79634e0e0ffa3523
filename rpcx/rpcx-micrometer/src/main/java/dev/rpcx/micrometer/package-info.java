/**
 * Records the calls of RPCX with Micrometer's meters. Starting point: {@link dev.rpcx.micrometer.CallMetrics}. The
 * package imports RPCX and Micrometer, and no framework.
 */
@NullMarked
package dev.rpcx.micrometer;

import org.jspecify.annotations.NullMarked;
