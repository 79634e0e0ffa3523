package dev.rpcx;

import io.netty.channel.Channel;
import io.netty.handler.ssl.ClientAuth;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslHandler;
import io.netty.handler.ssl.SslProvider;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLSession;
import javax.net.ssl.SSLSessionContext;
import org.jspecify.annotations.Nullable;

/**
 * TLS 1.3 for a server or a client, from files in PEM form: certificates, keys as unencrypted PKCS#8. Files are read
 * when this is made and at each {@link #reload}; connections made afterwards have what was read then, those that stand
 * go on. Thread-safe.
 *
 * <pre>{@code
 * Server.builder(registry).tls(Tls.server(chain, key).requiringClientsOf(authority));
 * Client.builder().tls(Tls.client().trusting(authority).as(chain, key));
 * }</pre>
 */
public final class Tls {
    /** Time for the handshake, in which a connection costs its place only. Source: Netty's own standard. */
    private static final long HANDSHAKE_SECONDS = 10;

    /**
     * A server whose sessions last longer than the seven days that a ticket of TLS 1.3 may live sends none (source: RFC
     * 8446, 4.6.1; the JDK's {@code NewSessionTicket}). A session that is resumed shows no certificates: one that has
     * expired since would be let in.
     */
    private static final long NO_TICKETS_SECONDS = 604_801;

    private final boolean server;
    private final @Nullable Path chain;
    private final @Nullable Path key;
    private final @Nullable Path trusted;
    private final @Nullable String name;
    private volatile SslContext context;

    private Tls(
            boolean server, @Nullable Path chain, @Nullable Path key, @Nullable Path trusted, @Nullable String name) {
        this.server = server;
        this.chain = chain;
        this.key = key;
        this.trusted = trusted;
        this.name = name;
        this.context = read();
    }

    /**
     * A server with this certificate, its authorities behind it in the same file, and its key.
     *
     * @throws IllegalArgumentException files that cannot be read, or hold something else, or a key that is not the
     *     certificate's
     */
    public static Tls server(Path chain, Path key) {
        return new Tls(true, chain, key, null, null);
    }

    /** A client that trusts the authorities of its JDK, and shows no certificate. */
    public static Tls client() {
        return new Tls(false, null, null, null, null);
    }

    /**
     * For a server: a client needs a certificate of one of these authorities, otherwise its connection ends before its
     * first frame. A client's own certificate in this file is trusted too. What stands in this file is trusted also
     * after it has expired.
     */
    public Tls requiringClientsOf(Path authorities) {
        expect(true, "requiringClientsOf");
        return new Tls(true, chain, key, authorities, null);
    }

    /**
     * For a client: only servers with a certificate of one of these authorities. A server's own certificate in this
     * file is trusted too. What stands in this file is trusted also after it has expired, authorities as well as a
     * server's own certificate.
     */
    public Tls trusting(Path authorities) {
        expect(false, "trusting");
        return new Tls(false, chain, key, authorities, name);
    }

    /** For a client: shows this certificate to servers that ask for one. */
    public Tls as(Path ownChain, Path ownKey) {
        expect(false, "as");
        return new Tls(false, ownChain, ownKey, trusted, name);
    }

    /**
     * For a client: the name that the server's certificate has to have. Without it that is the host it connects to;
     * needed where instances are found by address, as by {@link Endpoints#dns}.
     */
    public Tls expecting(String serverName) {
        expect(false, "expecting");
        if (!Endpoint.isHost(serverName)) {
            throw new IllegalArgumentException(
                    "name \"" + serverName + "\" (expected: that of a server, of 1 to 255 characters without spaces)");
        }
        return new Tls(false, chain, key, trusted, serverName);
    }

    private void expect(boolean wanted, String what) {
        if (server != wanted) {
            throw new IllegalStateException(what + " on a " + (server ? "server's" : "client's") + " Tls");
        }
    }

    /**
     * Reads the files again, for this object alone, and not for those that it was made from or that were made from it:
     * so call it on the one that was given to a builder. Connections that stand stay, whoever is at their other end.
     * Blocks for as long as that takes.
     *
     * @throws IllegalArgumentException files that cannot be read, or hold something else, or a key that is not the
     *     certificate's: what was read before stays in force
     */
    public void reload() {
        context = read();
    }

    private SslContext read() {
        try {
            SslContextBuilder builder;
            if (chain == null || key == null) {
                builder = SslContextBuilder.forClient();
            } else {
                // read once: what is checked is what will be used, also while somebody changes the files
                byte[] certificates = Files.readAllBytes(chain);
                byte[] secret = Files.readAllBytes(key);
                builder = server
                        ? SslContextBuilder.forServer(stream(certificates), stream(secret))
                        : SslContextBuilder.forClient().keyManager(stream(certificates), stream(secret));
                if (!KeyPairs.fit(certificates, secret)) {
                    throw new NoPair("key " + key + " is not that of certificate " + chain);
                }
            }
            if (server) {
                builder.clientAuth(trusted == null ? ClientAuth.NONE : ClientAuth.REQUIRE);
            } else {
                builder.endpointIdentificationAlgorithm("HTTPS");
            }
            if (trusted != null) {
                builder.trustManager(trusted.toFile());
            }
            return builder.sslProvider(SslProvider.JDK)
                    .sessionTimeout(NO_TICKETS_SECONDS)
                    // Not 1.2: its clients may ask for another handshake as often as they like, 26 ms of an event loop
                    // each, which no limit of
                    // ours sees. Every JDK from 11 on has 1.3.
                    .protocols("TLSv1.3")
                    .build();
        } catch (NoPair e) {
            throw e;
        } catch (IOException | GeneralSecurityException | IllegalArgumentException e) {
            throw new IllegalArgumentException(
                    files() + " (expected: PEM files, the key unencrypted PKCS#8): " + e.getMessage(), e);
        }
    }

    private static final class NoPair extends IllegalArgumentException {
        private static final long serialVersionUID = 1L;

        NoPair(String text) {
            super(text);
        }
    }

    private static InputStream stream(byte[] bytes) {
        return new ByteArrayInputStream(bytes);
    }

    /** The files that are read, and no others. */
    private String files() {
        List<String> files = new ArrayList<>();
        if (chain != null) {
            files.add("certificates " + chain);
        }
        if (key != null) {
            files.add("key " + key);
        }
        if (trusted != null) {
            files.add("authorities " + trusted);
        }
        return files.isEmpty() ? "authorities of the JDK" : String.join(", ", files);
    }

    /** For a server's {@code tls}: refuses a client's. */
    Tls checked(boolean asServer) {
        expect(asServer, "tls");
        return this;
    }

    /**
     * First in the pipeline of a client's new connection.
     *
     * @param account is charged for what has come of records and handshakes that are not whole
     * @param recordNanos longest time for a record that is more than a little
     */
    void addTo(Channel channel, Account account, Endpoint remote, long recordNanos) {
        String host = name == null ? remote.host() : name;
        resumeNothing();
        add(
                channel,
                new TlsRecords(channel, account, recordNanos, TlsRecords.MAX_SILENT_OF_SERVER),
                context.newHandler(channel.alloc(), host, remote.port()));
    }

    /** Another server than RPCX's may have sent a ticket: each connection sees a certificate all the same. */
    private void resumeNothing() {
        SSLSessionContext sessions = context.sessionContext();
        for (byte[] id : Collections.list(sessions.getIds())) {
            SSLSession session = sessions.getSession(id);
            if (session != null) {
                session.invalidate();
            }
        }
    }

    /** First in the pipeline of a server's new connection. For the parameters see above. */
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
}
