/**
 * The contracts' records as JSON: UTF-8, dates as ISO 8601 text, decimals as numbers with their scale.
 *
 * <p>Starting point: {@link dev.parley.encoding.json.JsonCodec}. Thread-safe. Never imports a transport.
 */
@NullMarked
package dev.parley.encoding.json;

import org.jspecify.annotations.NullMarked;
