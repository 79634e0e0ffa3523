package dev.rpcx;

import io.netty.channel.Channel;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslHandler;
import java.security.Principal;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLPeerUnverifiedException;
import org.jspecify.annotations.Nullable;

/** Sets up TLS on each new connection of a server or a client, and says who is at the other end. Thread-safe. */
final class TlsEngine {
    /** Time for the handshake, in which a connection costs its place only. Source: Netty's own standard. */
    private static final long HANDSHAKE_SECONDS = 10;

    private final @Nullable String name;
    private volatile SslContext context;

    /** @param name the name that a client expects in its server's certificate; null if it is the host it connects to */
    TlsEngine(SslContext context, @Nullable String name) {
        this.name = name;
        this.context = context;
    }

    /** Connections that are made from now on use this context; those that stand go on. */
    void use(SslContext read) {
        context = read;
    }

    /**
     * Puts TLS first into the pipeline of a client's new connection.
     *
     * @param account holder that pays for what has come of records and handshakes that are not whole
     * @param recordNanos longest time for a record that is more than a little
     */
    void addTo(Channel channel, Account account, Endpoint remote, long recordNanos) {
        String host = name == null ? remote.host() : name;
        add(
                channel,
                new TlsRecords(channel, account, recordNanos, TlsRecords.MAX_SILENT_OF_SERVER),
                context.newHandler(channel.alloc(), host, remote.port()));
    }

    /** Puts TLS first into the pipeline of a server's new connection, with parameters as a client's. */
    void addTo(Channel channel, Account account, long recordNanos) {
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

    /** Says whom the certificate names that the client has shown; null if it has shown none. */
    static @Nullable Principal peer(Channel channel) {
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
