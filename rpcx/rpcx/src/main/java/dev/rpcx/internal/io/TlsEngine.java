package dev.rpcx.internal.io;

import dev.rpcx.Endpoint;
import dev.rpcx.internal.ledger.Account;
import io.netty.channel.Channel;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslHandler;
import java.security.Principal;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLPeerUnverifiedException;
import org.jspecify.annotations.Nullable;

/**
 * Sets up TLS on each new connection of a server or a client, and finds the name of the peer in its certificate.
 * Thread-safe.
 */
public final class TlsEngine {
    /** Longest time for the handshake: 10 s. Source: Netty's default. */
    private static final long HANDSHAKE_SECONDS = 10;

    private final @Nullable String name;
    private volatile SslContext context;

    /**
     * Creates an engine for a server or a client.
     *
     * @param name name that a client expects in its server's certificate; null if it is the host to which the client
     *     connects
     */
    public TlsEngine(SslContext context, @Nullable String name) {
        this.name = name;
        this.context = context;
    }

    /** Replaces the context for new connections. Open connections keep theirs. */
    public void use(SslContext read) {
        context = read;
    }

    /**
     * Adds TLS to the pipeline of a client's new connection, before the handlers of the connection are added.
     *
     * @param account account that is charged for records and handshakes that have come in part
     * @param recordNanos longest time until a record is complete, as in {@code TlsRecords}
     */
    public void addTo(Channel channel, Account account, Endpoint remote, long recordNanos) {
        String host = name == null ? remote.host() : name;
        add(
                channel,
                new TlsRecords(channel, account, recordNanos, TlsRecords.MAX_SILENT_OF_SERVER),
                context.newHandler(channel.alloc(), host, remote.port()));
    }

    /**
     * Adds TLS to the pipeline of a server's new connection, before the handlers of the connection are added. The
     * parameters have the same meaning as at a client.
     */
    public void addTo(Channel channel, Account account, long recordNanos) {
        add(
                channel,
                new TlsRecords(channel, account, recordNanos, TlsRecords.MAX_SILENT_OF_CLIENT),
                context.newHandler(channel.alloc()));
    }

    private static void add(Channel channel, TlsRecords records, SslHandler engine) {
        engine.setHandshakeTimeout(HANDSHAKE_SECONDS, TimeUnit.SECONDS);
        channel.pipeline().addLast(records, engine, records.opened());
        engine.handshakeFuture().addListener(done -> records.handshaken());
    }

    /**
     * Returns the subject of the client's certificate; null if the client has sent none, or if the connection has no
     * TLS.
     */
    public static @Nullable Principal peer(Channel channel) {
        SslHandler handler = channel.pipeline().get(SslHandler.class);
        if (handler == null) {
            return null;
        }
        try {
            return handler.engine().getSession().getPeerPrincipal();
        } catch (SSLPeerUnverifiedException none) {
            return null;
        }
    }
}
