/**
 * Records the calls of RPCX with Micrometer's meters, and lets Micrometer's context propagation carry their context to
 * other threads. Starting points: {@link dev.rpcx.micrometer.CallMetrics},
 * {@link dev.rpcx.micrometer.CallContextAccessor}. The package imports RPCX and Micrometer, and no framework.
 */
@NullMarked
package dev.rpcx.micrometer;

import org.jspecify.annotations.NullMarked;
