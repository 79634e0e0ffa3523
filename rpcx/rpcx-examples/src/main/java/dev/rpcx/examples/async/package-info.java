/** Calls that do not wait: start at {@link dev.rpcx.examples.async.ManyAtOnce}. */
package dev.rpcx.examples.async;
