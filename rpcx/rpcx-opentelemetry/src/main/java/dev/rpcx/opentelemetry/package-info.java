/**
 * Records the calls of RPCX as spans of OpenTelemetry, across services. Starting point:
 * {@link dev.rpcx.opentelemetry.CallTracing}. The package imports RPCX and OpenTelemetry's API, and no SDK and no
 * framework.
 */
@NullMarked
package dev.rpcx.opentelemetry;

import org.jspecify.annotations.NullMarked;
