/**
 * RPCX makes remote calls from plain interfaces and records. It sends plain Protobuf, in two forms on one port: the
 * native wire and the classic wire. Both are described in {@code rpcx/spec/wire.md}. With the library
 * {@code rpcx-grpc}, a server speaks gRPC on the same port ({@code rpcx/spec/grpc.md}).
 *
 * <p>Starting points: {@link dev.rpcx.RPCXServer} and {@link dev.rpcx.RegistryServer} to publish,
 * {@link dev.rpcx.Server} to serve, {@link dev.rpcx.RPCXClient} and {@link dev.rpcx.Client} to call.
 *
 * <p>The package has two layers.
 *
 * <ul>
 *   <li>The <b>vocabulary</b> is what users and rooms share; the packages of RPCX are called rooms. The vocabulary uses
 *       {@code dev.rpcx.internal}, which does not know the vocabulary. Two of its types have static methods that use a
 *       room: {@code CallContext} uses {@code CurrentCall}, and {@code Endpoints} three classes of
 *       {@code internal.discovery}.
 *       <ul>
 *         <li>On a service: {@link dev.rpcx.RPCXServer} names it, {@link dev.rpcx.Method} publishes a method,
 *             {@link dev.rpcx.RunOn} says on which kind of thread its handlers run, {@link dev.rpcx.LongPoll} says that
 *             its handlers wait for news.
 *         <li>On an exception: {@link dev.rpcx.RPCXError} makes it arrive as itself.
 *         <li>On an interface that is called: {@link dev.rpcx.RPCXClient} names the service, {@code Method} gives a
 *             method its name and time, and allows retries and hedges, {@link dev.rpcx.OneWay} makes a call a notice,
 *             {@link dev.rpcx.RouteBy} marks the argument that decides which instance is called.
 *         <li>Where to call: {@link dev.rpcx.Endpoint} is one instance, {@link dev.rpcx.Endpoints} says which
 *             instances there are, {@link dev.rpcx.Choice} says how one of them is chosen.
 *         <li>During a call: {@link dev.rpcx.Interceptor} stands around it, {@link dev.rpcx.Metadata} travels beside
 *             the arguments, {@link dev.rpcx.CallContext} has the time that is left and the caller,
 *             {@link dev.rpcx.RPCXFuture} is the result of an asynchronous call, {@link dev.rpcx.RPCXException} says
 *             why there is none. {@link dev.rpcx.VisibleText} makes the text of strangers safe to print.
 *       </ul>
 *   <li>The <b>doors</b> stand above all rooms and put them together; no room knows a door. {@link dev.rpcx.Client} and
 *       {@link dev.rpcx.Server} check the settings and pass everything on to {@code ClientCore} and {@code ServerCore};
 *       {@link dev.rpcx.Publishers} makes the publishers of streams;
 *       {@link dev.rpcx.RegistryServer} collects what a server publishes; {@link dev.rpcx.Tls} reads certificates and
 *       keys; {@link dev.rpcx.Tokens} and {@link dev.rpcx.CallLog} are interceptors, which sign and verify, and log.
 * </ul>
 *
 * <p>The path of a call: a proxy of {@code internal.client} encodes it on the caller's thread into a slot of a
 * connection; {@code internal.wire} and {@code internal.io} send it; {@code internal.server} admits it, runs the
 * handler and sends the reply, which wakes the caller; the caller decodes it itself. The comments of these packages
 * describe it step by step; the comment of {@code dev.rpcx.internal} has the map of all rooms.
 *
 * <p>Threads: a connection belongs to one event loop. Only that loop uses the parts of the connection, except parts
 * whose comments say that any thread may call them.
 *
 * <p>Settings: what is given to a builder, a factory or a method of this API is checked there immediately. A null that
 * is not allowed by {@code @Nullable} leads to a {@link java.lang.NullPointerException}, and any other bad value to an
 * {@link java.lang.IllegalArgumentException}. The text of the exception names the setting or parameter, the value, and
 * what was expected.
 *
 * <p><b>A new setting</b> would be a method of the builder of {@code Client} or {@code Server}, which checks it, and a
 * component of {@code ClientSettings} or {@code ServerSettings}, which checks whether it fits the other settings.
 * For Spring Boot it would be a component of {@code RPCXProperties}.
 */
@NullMarked
package dev.rpcx;

import org.jspecify.annotations.NullMarked;
