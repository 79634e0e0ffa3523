/**
 * Shows two programs with a {@code main} each and nothing else, which share no class. Start at
 * {@link dev.rpcx.examples.plain.GreeterServer}, and continue with {@link dev.rpcx.examples.plain.GreeterClient}.
 */
package dev.rpcx.examples.plain;
