/** Shows calls that do not wait. Start at {@link dev.rpcx.examples.async.ManyAtOnce}. */
package dev.rpcx.examples.async;
