/** Shows tasks of a call on other threads. Start at {@link dev.rpcx.examples.context.OtherThreads}. */
package dev.rpcx.examples.context;
