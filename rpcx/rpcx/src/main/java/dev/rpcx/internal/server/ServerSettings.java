package dev.rpcx.internal.server;

import dev.rpcx.internal.io.TlsEngine;
import org.jspecify.annotations.Nullable;

/**
 * Settings that a server is made from. The builder checks each value where it is given.
 *
 * @param host address to listen on
 * @param port number to listen on; 0 lets the system choose
 * @param inProcess whether only clients of this process reach the server, without a socket
 * @param eventLoops number of threads that serve the connections
 * @param poolSize number of threads of the pool that handlers run on
 * @param tls TLS of every connection; null if they are plain
 * @param classic whether the classic wire is served beside the native one
 * @param keepAliveNanos time within which a client that is gone without a word is noticed
 * @param maxCallNanos largest time of a call that neither takes nor brings a stream
 * @param maxConnections largest number of connections at once
 * @param maxConnectionsPerAddress largest number of connections at once from one address
 * @param maxCalls largest number of calls under way on one connection
 * @param maxRunning largest number of handlers at once, those on event loops not counted
 * @param maxMessageBytes largest number of bytes of the body of a request or of an item
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
