package dev.rpcx;

import io.netty.handler.ssl.ClientAuth;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
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
    /**
     * A server whose sessions last longer than the seven days that a ticket of TLS 1.3 may live sends none (source: RFC
     * 8446, 4.6.1; the JDK's {@code NewSessionTicket}), and such a client drops those that another server than RPCX's
     * has sent. A session that is resumed shows no certificates: one that has expired since would be let in.
     */
    private static final long NO_TICKETS_SECONDS = 604_801;

    private final boolean server;

    // what is not asked for is empty, and never null: a null that somebody gives must not turn anything off
    private final Optional<Own> own;
    private final Optional<Path> trusted;
    private final Optional<String> name;

    private final TlsEngine engine;

    /** The certificate that this side shows, and its key. */
    private record Own(Path chain, Path key) {}

    private Tls(boolean server, Optional<Own> own, Optional<Path> trusted, Optional<String> name) {
        this.server = server;
        this.own = own;
        this.trusted = trusted;
        this.name = name;
        this.engine = new TlsEngine(read(), name.orElse(null));
    }

    private static Optional<Own> own(Path chain, String chainName, Path key, String keyName) {
        return Optional.of(new Own(
                Given.notNull(chain, chainName, "a PEM file of certificates"),
                Given.notNull(key, keyName, "a PEM file of an unencrypted PKCS#8 key")));
    }

    private static Optional<Path> authorities(Path file) {
        return Optional.of(Given.notNull(file, "authorities", "a PEM file of certificates"));
    }

    /**
     * A server with this certificate, its authorities behind it in the same file, and its key.
     *
     * @throws IllegalArgumentException files that cannot be read, or hold something else, or a key that is not the
     *     certificate's
     */
    public static Tls server(Path chain, Path key) {
        return new Tls(true, own(chain, "chain", key, "key"), Optional.empty(), Optional.empty());
    }

    /** A client that trusts the authorities of its JDK, and shows no certificate. */
    public static Tls client() {
        return new Tls(false, Optional.empty(), Optional.empty(), Optional.empty());
    }

    /**
     * For a server: a client needs a certificate of one of these authorities, otherwise its connection ends before its
     * first frame. A client's own certificate in this file is trusted too. What stands in this file is trusted also
     * after it has expired.
     *
     * @throws NullPointerException no authorities: a server that asks for no certificates is one without this
     */
    public Tls requiringClientsOf(Path authorities) {
        Optional<Path> required = authorities(authorities);
        expect(true, "requiringClientsOf");
        return new Tls(true, own, required, name);
    }

    /**
     * For a client: only servers with a certificate of one of these authorities. A server's own certificate in this
     * file is trusted too. What stands in this file is trusted also after it has expired, authorities as well as a
     * server's own certificate.
     */
    public Tls trusting(Path authorities) {
        expect(false, "trusting");
        return new Tls(false, own, authorities(authorities), name);
    }

    /** For a client: shows this certificate to servers that ask for one. */
    public Tls as(Path ownChain, Path ownKey) {
        expect(false, "as");
        return new Tls(false, own(ownChain, "ownChain", ownKey, "ownKey"), trusted, name);
    }

    /**
     * For a client: the name that the server's certificate has to have. Without it that is the host it connects to.
     * Needed where a registry or DNS says which hosts these are: who answers falsely there names a host for which he
     * has a certificate.
     */
    public Tls expecting(String serverName) {
        expect(false, "expecting");
        if (!Endpoint.isHost(Given.notNull(serverName, "serverName", "that of a server"))) {
            throw new IllegalArgumentException(
                    "name \"" + serverName + "\" (expected: that of a server, of 1 to 255 characters without spaces)");
        }
        return new Tls(false, own, trusted, Optional.of(serverName));
    }

    /** Says whether {@link #expecting} has been told a name. */
    boolean hasName() {
        return name.isPresent();
    }

    private void expect(boolean wanted, String what) {
        if (server != wanted) {
            throw new IllegalStateException(
                    what + " on a " + side(server) + " Tls (expected: on a " + side(wanted) + ", " + way(wanted) + ")");
        }
    }

    private static String side(boolean isServer) {
        return isServer ? "server's" : "client's";
    }

    private static String way(boolean isServer) {
        return isServer ? "Tls.server(chain, key)" : "Tls.client()";
    }

    /**
     * Reads the files again, for this object alone, and not for those that it was made from or that were made from it:
     * so call it on the one that was given to a builder. Connections that stand stay, whoever is at their other end.
     * Blocks for as long as that takes.
     *
     * @throws IllegalArgumentException files that cannot be read, or hold something else, or a key that is not the
     *     certificate's: what was read before stays in force
     */
    public synchronized void reload() {
        engine.use(read());
    }

    private SslContext read() {
        SslContext made;
        String misfit = null;
        try {
            SslContextBuilder builder;
            if (own.isEmpty()) {
                builder = SslContextBuilder.forClient();
            } else {
                Own shown = own.get();
                // read once: what is checked is what will be used, also while somebody changes the files
                byte[] certificates = Files.readAllBytes(shown.chain);
                byte[] secret = Files.readAllBytes(shown.key);
                builder = server
                        ? SslContextBuilder.forServer(stream(certificates), stream(secret))
                        : SslContextBuilder.forClient().keyManager(stream(certificates), stream(secret));
                if (!KeyPairs.fit(certificates, secret)) {
                    misfit = "key " + shown.key + " is not that of certificate " + shown.chain;
                }
            }
            if (server) {
                builder.clientAuth(trusted.isPresent() ? ClientAuth.REQUIRE : ClientAuth.NONE);
            } else {
                builder.endpointIdentificationAlgorithm("HTTPS");
            }
            trusted.ifPresent(file -> builder.trustManager(file.toFile()));
            made = builder.sslProvider(SslProvider.JDK)
                    .sessionTimeout(NO_TICKETS_SECONDS)
                    // Not 1.2: its clients may ask for another handshake as often as they like, 26 ms of an event loop
                    // each, which no limit of
                    // ours sees. Every JDK from 11 on has 1.3.
                    .protocols("TLSv1.3")
                    .build();
        } catch (IOException | GeneralSecurityException | IllegalArgumentException e) {
            throw new IllegalArgumentException(
                    files() + " (expected: PEM files, the key unencrypted PKCS#8): " + e.getMessage(), e);
        }
        if (misfit != null) {
            throw new IllegalArgumentException(misfit);
        }
        return made;
    }

    private static InputStream stream(byte[] bytes) {
        return new ByteArrayInputStream(bytes);
    }

    /** The files that are read, and no others. */
    private String files() {
        List<String> files = new ArrayList<>();
        own.ifPresent(shown -> {
            files.add("certificates " + shown.chain);
            files.add("key " + shown.key);
        });
        trusted.ifPresent(file -> files.add("authorities " + file));
        return files.isEmpty() ? "authorities of the JDK" : String.join(", ", files);
    }

    /** For the {@code tls} of builders. Refuses a client's for a server, and the other way round. */
    static Tls checked(@Nullable Tls given, boolean asServer) {
        String expected = "a " + side(asServer) + ", " + way(asServer);
        Tls tls = Given.notNull(given, "tls", expected);
        if (tls.server != asServer) {
            throw new IllegalStateException("tls: a " + side(tls.server) + " Tls (expected: " + expected + ")");
        }
        return tls;
    }

    /** Sets up connections with what was read last: one engine for as long as this object lives. */
    TlsEngine engine() {
        return engine;
    }
}
