/** Shows a server with limits and a log, and how it stops. Start at {@link dev.rpcx.examples.operating.Stopping}. */
package dev.rpcx.examples.operating;
