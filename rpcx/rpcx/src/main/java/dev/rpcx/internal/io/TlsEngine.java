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

/** Sets up TLS on each new connection of a server or a client, and names the peer by its certificate. Thread-safe. */
public final class TlsEngine {
    /**
     * Longest time for the handshake. Until the handshake is done, a connection takes up one of the connections that a
     * server allows, and little else. Source: Netty's default.
     */
    private static final long HANDSHAKE_SECONDS = 10;

    private final @Nullable String name;
    private volatile SslContext context;

    /** @param name the name that a client expects in its server's certificate; null if it is the host it connects to */
    public TlsEngine(SslContext context, @Nullable String name) {
        this.name = name;
        this.context = context;
    }

    /** Replaces the context for new connections; open connections keep theirs. */
    public void use(SslContext read) {
        context = read;
    }

    /**
     * Puts TLS first into the pipeline of a client's new connection.
     *
     * @param account holder that is charged for records and handshakes that have come in part
     * @param recordNanos longest time in which a record becomes whole, as in {@code TlsRecords}
     */
    public void addTo(Channel channel, Account account, Endpoint remote, long recordNanos) {
        String host = name == null ? remote.host() : name;
        add(
                channel,
                new TlsRecords(channel, account, recordNanos, TlsRecords.MAX_SILENT_OF_SERVER),
                context.newHandler(channel.alloc(), host, remote.port()));
    }

    /** Puts TLS first into the pipeline of a server's new connection. The parameters are those of a client's. */
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

    /** @return subject of the certificate that the client has presented; null if there is none, as without TLS */
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
