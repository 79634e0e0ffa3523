/** Shows calls that carry many items. Start at {@link dev.rpcx.examples.streaming.Countdown}. */
package dev.rpcx.examples.streaming;
