package dev.rpcx;

import dev.rpcx.internal.Given;
import dev.rpcx.internal.io.KeyPairs;
import dev.rpcx.internal.io.TlsEngine;
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
 * Holds the TLS 1.3 settings of a server or a client. The certificates and keys are in PEM files; each key has to be
 * unencrypted PKCS#8. The files are read when this object is created, and at each {@link #reload}. New connections use
 * the certificates and keys that were read last, and open connections do not change. Thread-safe.
 *
 * <pre>{@code
 * Server.builder(registry).tls(Tls.server(chain, key).requiringClientsOf(authority));
 * Client.builder().tls(Tls.client().trusting(authority).as(chain, key));
 * }</pre>
 */
public final class Tls {
    /**
     * Lifetime of a TLS session, in seconds. A ticket of TLS 1.3 lives at most seven days (RFC 8446, 4.6.1), and this
     * lifetime is longer, so the JDK sends no tickets and keeps none. With a ticket, a peer whose certificate has
     * expired could resume its session.
     */
    private static final long NO_TICKETS_SECONDS = 604_801;

    private final boolean server;

    // A setting that is not set is Optional.empty(), never null. If null meant "not set", the call
    // requiringClientsOf(null) could turn off the check of the clients' certificates.
    private final Optional<Own> own;
    private final Optional<Path> trusted;
    private final Optional<String> name;

    private final TlsEngine engine;

    /**
     * Names two PEM files of this side: the certificate chain that this side presents, and the private key of this
     * side's own certificate, which is the first one of the chain.
     */
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
     * Creates settings of a server that presents the certificate in {@code chain}.
     *
     * @param chain PEM file with the server's certificate, followed by the certificates of its authorities
     * @param key PEM file of the certificate's private key, as unencrypted PKCS#8
     * @throws IllegalArgumentException if a file cannot be read, a file is not a PEM file as described here, or the key
     *     does not belong to the certificate
     */
    public static Tls server(Path chain, Path key) {
        return new Tls(true, own(chain, "chain", key, "key"), Optional.empty(), Optional.empty());
    }

    /** Creates settings of a client that presents no certificate, and trusts the authorities that its JDK trusts. */
    public static Tls client() {
        return new Tls(false, Optional.empty(), Optional.empty(), Optional.empty());
    }

    /**
     * Returns a copy of a server's settings that requires each client to present a certificate of one of these
     * authorities. The connection of any other client ends before the server has read a call. If the file contains the
     * certificate of a client itself, that certificate is trusted too. The certificates in the file are trusted even
     * after they have expired.
     *
     * @param authorities PEM file of certificates
     * @throws NullPointerException if {@code authorities} is null; for a server that asks for no certificates, do not
     *     call this method
     * @throws IllegalStateException if these are settings of a client
     */
    public Tls requiringClientsOf(Path authorities) {
        Optional<Path> required = authorities(authorities);
        expect(true, "requiringClientsOf");
        return new Tls(true, own, required, name);
    }

    /**
     * Returns a copy of a client's settings with which the client trusts only servers that have a certificate of one of
     * these authorities. A server's own certificate in the file is trusted too. The certificates in the file are
     * trusted even after they have expired.
     *
     * @param authorities PEM file of certificates
     * @throws IllegalStateException if these are settings of a server
     */
    public Tls trusting(Path authorities) {
        expect(false, "trusting");
        return new Tls(false, own, authorities(authorities), name);
    }

    /**
     * Returns a copy of a client's settings with a certificate of the client. The client presents it to servers that
     * ask for a certificate.
     *
     * @param ownChain PEM file with the client's certificate, followed by the certificates of its authorities
     * @param ownKey PEM file of the certificate's private key, as unencrypted PKCS#8
     * @throws IllegalStateException if these are settings of a server
     */
    public Tls as(Path ownChain, Path ownKey) {
        expect(false, "as");
        return new Tls(false, own(ownChain, "ownChain", ownKey, "ownKey"), trusted, name);
    }

    /**
     * Returns a copy of a client's settings with the name that the server's certificate has to have. Without this
     * setting, the certificate has to have the name of the host. Set a name if a registry or DNS supplies the hosts: an
     * attacker who forges their answers can supply a host for which the attacker has a certificate.
     *
     * @param serverName 1 to 255 characters, without spaces and control characters
     * @throws IllegalStateException if these are settings of a server
     */
    public Tls expecting(String serverName) {
        expect(false, "expecting");
        if (!Endpoint.isHost(Given.notNull(serverName, "serverName", "that of a server"))) {
            throw new IllegalArgumentException(
                    "name \"" + serverName + "\" (expected: that of a server, of 1 to 255 characters without spaces)");
        }
        return new Tls(false, own, trusted, Optional.of(serverName));
    }

    /** Returns whether {@link #expecting} has set the name that the server's certificate has to have. */
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
     * Reads the files of certificates and keys again, for new connections. Only this object changes, not its copies or
     * other {@code Tls} objects, so call this method on the object that was given to a builder. Open connections stay,
     * even if their peers would no longer be accepted. This method blocks while it reads the files.
     *
     * @throws IllegalArgumentException if a file cannot be read, a file is not a PEM file as this class requires, or
     *     the key does not belong to the certificate; the settings that were read before stay in force
     */
    public synchronized void reload() {
        // Several threads can call this method at the same time. The lock is held from the reading of the files to the
        // store, so that no thread replaces newer content by content that it has read earlier.
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
                // each file is read once, so that the bytes that are checked are the bytes that are used
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
                    // TLS 1.2 is off: its clients may ask for new handshakes as often as they like, each of which costs
                    // 26 ms of an event loop. No limit of RPCX counts handshakes.
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

    /** Returns the names of the files that this object reads, for the message of an exception. */
    private String files() {
        List<String> files = new ArrayList<>();
        own.ifPresent(shown -> {
            files.add("certificates " + shown.chain);
            files.add("key " + shown.key);
        });
        trusted.ifPresent(file -> files.add("authorities " + file));
        return files.isEmpty() ? "authorities of the JDK" : String.join(", ", files);
    }

    /**
     * Checks the argument of a builder's {@code tls}, and returns it. Settings of a client are refused for a server,
     * and settings of a server are refused for a client.
     */
    static Tls checked(@Nullable Tls given, boolean asServer) {
        String expected = "a " + side(asServer) + ", " + way(asServer);
        Tls tls = Given.notNull(given, "tls", expected);
        if (tls.server != asServer) {
            throw new IllegalStateException("tls: a " + side(tls.server) + " Tls (expected: " + expected + ")");
        }
        return tls;
    }

    /**
     * Returns the engine that adds TLS to new connections. The engine is always the same object, but a successful
     * {@link #reload} gives it the new content of the files.
     */
    TlsEngine engine() {
        return engine;
    }
}
