/**
 * RPCX's calls as spans of OpenTelemetry, across services. Starting point: {@link dev.rpcx.opentelemetry.CallTracing}. Imports RPCX and
 * OpenTelemetry's API, no SDK and no framework.
 */
@NullMarked
package dev.rpcx.opentelemetry;

import org.jspecify.annotations.NullMarked;
