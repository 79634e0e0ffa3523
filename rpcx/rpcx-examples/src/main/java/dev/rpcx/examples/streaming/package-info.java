/** Calls of many items: start at {@link dev.rpcx.examples.streaming.Thermometers}. */
package dev.rpcx.examples.streaming;
