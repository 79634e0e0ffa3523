/**
 * RPCX's calls as Micrometer's meters. Starting point: {@link dev.rpcx.micrometer.CallMetrics}. Imports RPCX and Micrometer, no framework.
 */
@NullMarked
package dev.rpcx.micrometer;

import org.jspecify.annotations.NullMarked;
