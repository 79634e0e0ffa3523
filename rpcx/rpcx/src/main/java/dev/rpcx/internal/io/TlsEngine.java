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
 * Adds TLS to each new connection of a server or a client, and returns the name in the peer's certificate. Thread-safe.
 */
public final class TlsEngine {
    /** Longest time for a TLS handshake: 10 s. Source: Netty's default. */
    private static final long MAX_HANDSHAKE_SECONDS = 10;

    private final @Nullable String name;

    /** TLS context for new connections. Any thread may write it, by {@link #use}, and event loops read it. */
    private volatile SslContext context;

    /**
     * Creates an engine for a server or a client.
     *
     * @param name name that a client expects in the certificate of the server; null for the host to which the client
     *     connects
     */
    public TlsEngine(SslContext context, @Nullable String name) {
        this.name = name;
        this.context = context;
    }

    /** Replaces the TLS context for new connections. Connections that are already open keep the old context. */
    public void use(SslContext read) {
        context = read;
    }

    /**
     * Adds TLS to the pipeline of a client's new connection. Called before the connection's other handlers are added.
     *
     * @param account account that is charged for records and handshakes that have arrived only in part
     * @param recordNanos longest time in nanoseconds that the peer can take to complete a large TLS record, see
     *     {@link TlsRecords}
     */
    public void addTo(Channel channel, Account account, Endpoint remote, long recordNanos) {
        String host = name == null ? remote.host() : name;
        add(
                channel,
                new TlsRecords(channel, account, recordNanos, TlsRecords.MAX_SILENT_OF_SERVER),
                context.newHandler(channel.alloc(), host, remote.port()));
    }

    /**
     * Adds TLS to the pipeline of a server's new connection. Called before the connection's other handlers are added.
     *
     * @param account account that is charged for records and handshakes that have arrived only in part
     * @param recordNanos longest time in nanoseconds that the peer can take to complete a large TLS record, see
     *     {@link TlsRecords}
     * @param applicationProtocol protocol that is agreed on with a client that asks for it (ALPN). A client that does
     *     not ask for it, such as a client of RPCX, gets a connection without such a protocol. Null for none
     */
    public void addTo(Channel channel, Account account, long recordNanos, @Nullable String applicationProtocol) {
        SslHandler handler = context.newHandler(channel.alloc());
        if (applicationProtocol != null) {
            // The empty text means that the server ignores what the client asks for.
            handler.engine()
                    .setHandshakeApplicationProtocolSelector(
                            (engine, asked) -> asked.contains(applicationProtocol) ? applicationProtocol : "");
        }
        add(channel, new TlsRecords(channel, account, recordNanos, TlsRecords.MAX_SILENT_OF_CLIENT), handler);
    }

    private static void add(Channel channel, TlsRecords records, SslHandler engine) {
        engine.setHandshakeTimeout(MAX_HANDSHAKE_SECONDS, TimeUnit.SECONDS);
        channel.pipeline().addLast(records, engine, records.opened());
        engine.handshakeFuture().addListener(done -> records.handshaken());
    }

    /**
     * Returns the subject of the client's certificate. Returns null if the client has sent no certificate, or if the
     * connection does not use TLS.
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
