/** Shows calls that carry many items. Start at {@link dev.rpcx.examples.streaming.Thermometers}. */
package dev.rpcx.examples.streaming;
