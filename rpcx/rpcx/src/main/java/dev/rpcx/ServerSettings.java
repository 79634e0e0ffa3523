package dev.rpcx;

import org.jspecify.annotations.Nullable;

/**
 * What a server is made from. The builder checks each value where it is given.
 *
 * @param host address to listen on
 * @param port number to listen on; 0 lets the system choose
 * @param inProcess whether only clients of this process reach the server, by no socket
 * @param eventLoops threads that serve the connections
 * @param poolSize threads of the pool that handlers run on
 * @param tls TLS of every connection; null if they are plain
 * @param classic whether the classic wire is served beside the native one
 * @param keepAliveNanos time within which a client that is gone without a word is noticed
 * @param maxCallNanos largest time of a call that neither takes nor brings a stream
 * @param maxConnections connections at once
 * @param maxConnectionsPerAddress connections at once from one address
 * @param maxCalls calls under way on one connection
 * @param maxRunning handlers at once, those on event loops not counted
 * @param maxMessageBytes bytes of a request
 */
record ServerSettings(
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
