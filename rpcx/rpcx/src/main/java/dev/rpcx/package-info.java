/**
 * RPCX: remote calls from plain interfaces and records. Plain Protobuf on the wire, two forms of it on one port ({@code rpcx/spec/wire.md}).
 *
 * <p>Starting points: {@link dev.rpcx.RPCXServer} and {@link dev.rpcx.RegistryServer} to publish, {@link dev.rpcx.Server} to serve,
 * {@link dev.rpcx.RPCXClient} and {@link dev.rpcx.Client} to call.
 *
 * <p>The path of a call: {@code ClientProxy} encodes on the caller's thread into its {@code ClientCall}, a slot of the connection;
 * {@code WireConnection} gathers what many callers queued and flushes it once on its event loop; the server's {@code ServerConnection}
 * finds the method by number and runs the handler; the reply goes back the same way and wakes the caller, which decodes it itself.
 *
 * <p>Threads: a connection belongs to one event loop. Whatever is not marked as callable from anywhere is touched by that loop only.
 *
 * <p>Settings: what is given to a builder, a factory or a method of this API is looked at there. A null for what is not
 * {@code @Nullable} is a {@link java.lang.NullPointerException}, another bad value an
 * {@link java.lang.IllegalArgumentException}; the text names the setting or parameter, the value, and what was
 * expected.
 *
 * <p>Never imports anything but the JDK, Netty's buffers and channels, and {@code dev.rpcx.codec}.
 */
@NullMarked
package dev.rpcx;

import org.jspecify.annotations.NullMarked;
