package dev.rpcx.internal.server;

import dev.rpcx.internal.io.TlsEngine;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Settings of a server. The builder checks each value when the user sets it.
 *
 * @param platform supplies the clock, random numbers, event loops and threads
 * @param host address or host name on which the server listens
 * @param port port on which the server listens; if it is 0, the system chooses the port
 * @param inProcess whether only clients in this process can reach the server, without a socket
 * @param eventLoops number of threads that serve the connections
 * @param poolSize maximum number of threads of the pool that run handlers at the same time
 * @param tls TLS of all connections; null for connections without TLS
 * @param classic whether the server serves the classic wire in addition to the native one
 * @param translated makes the wire, such as gRPC, that the server translates into the native one; null for none
 * @param keepAliveNanos maximum time, in nanoseconds, until the server notices that a client has vanished
 * @param maxCallNanos maximum time, in nanoseconds, of a call that neither takes nor returns a stream
 * @param maxConnections maximum number of connections at the same time
 * @param maxConnectionsPerAddress maximum number of connections from one address at the same time
 * @param maxCalls maximum number of calls under way on one connection
 * @param maxRunning maximum number of handlers that run at the same time, not counting those on event loops
 * @param maxMessageBytes maximum size, in bytes, of the body of a request or of a stream item
 */
public record ServerSettings(
        ServerPlatform platform,
        String host,
        int port,
        boolean inProcess,
        int eventLoops,
        int poolSize,
        @Nullable TlsEngine tls,
        boolean classic,
        @Nullable Function<List<ServerMethod>, TranslatedWire> translated,
        long keepAliveNanos,
        long maxCallNanos,
        int maxConnections,
        int maxConnectionsPerAddress,
        int maxCalls,
        int maxRunning,
        int maxMessageBytes) {}
