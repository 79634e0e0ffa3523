/** Shows one interface for both sides, as with Dubbo. Start at {@link dev.rpcx.examples.dubbo.SharedInterface}. */
package dev.rpcx.examples.dubbo;
