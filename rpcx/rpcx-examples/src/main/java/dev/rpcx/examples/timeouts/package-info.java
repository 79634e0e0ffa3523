/** Shows calls that end before their handlers do. Start at {@link dev.rpcx.examples.timeouts.Timeouts}. */
package dev.rpcx.examples.timeouts;
