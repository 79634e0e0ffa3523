/** Shows a service with two instances. Start at {@link dev.rpcx.examples.instances.TwoInstances}. */
package dev.rpcx.examples.instances;
