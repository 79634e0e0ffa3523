/** Shows a message that gets a new component. Start at {@link dev.rpcx.examples.schema.TwoVersions}. */
package dev.rpcx.examples.schema;
