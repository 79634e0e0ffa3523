/**
 * Two programs with a {@code main} each and nothing else: start at {@link dev.rpcx.examples.plain.GreeterServer}, then
 * {@link dev.rpcx.examples.plain.GreeterClient}. They share no class.
 */
package dev.rpcx.examples.plain;
