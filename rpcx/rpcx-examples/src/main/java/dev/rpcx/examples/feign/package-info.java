/** Shows what a client of OpenFeign becomes. Start at {@link dev.rpcx.examples.feign.Catalog}. */
package dev.rpcx.examples.feign;
