package dev.rpcx.internal.server;

import dev.rpcx.internal.io.TlsEngine;
import org.jspecify.annotations.Nullable;

/**
 * Settings from which a server is made. The builder checks each value when the user sets it.
 *
 * @param platform clock, random numbers, event loops and threads that the server uses
 * @param host address on which the server listens
 * @param port number of the port on which the server listens; if it is 0, the system chooses the port
 * @param inProcess whether only clients in this process can reach the server, without a socket
 * @param eventLoops number of threads that serve the connections
 * @param poolSize number of threads of the pool on which handlers run
 * @param tls TLS of every connection; null for connections without TLS
 * @param classic whether the server serves the classic wire in addition to the native one
 * @param keepAliveNanos maximum time until the server notices that a client has vanished, in nanoseconds
 * @param maxCallNanos maximum time of a call that neither takes nor returns a stream, in nanoseconds
 * @param maxConnections maximum number of connections at the same time
 * @param maxConnectionsPerAddress maximum number of connections from one address at the same time
 * @param maxCalls maximum number of calls under way on one connection
 * @param maxRunning maximum number of handlers that run at the same time, except those on event loops
 * @param maxMessageBytes maximum number of bytes in the body of a request or of an item
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
        long keepAliveNanos,
        long maxCallNanos,
        int maxConnections,
        int maxConnectionsPerAddress,
        int maxCalls,
        int maxRunning,
        int maxMessageBytes) {}
