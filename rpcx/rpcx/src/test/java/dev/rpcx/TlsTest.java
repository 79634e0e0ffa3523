package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import io.netty.buffer.ByteBuf;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.handler.ssl.SslHandler;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.Principal;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ssl.SSLEngine;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests TLS and mutual TLS: which peers are accepted, which are refused, and what happens if certificates change. */
@Timeout(300)
class TlsTest {
    @RPCXServer("secret")
    static final class Secret {
        @Method
        String whoAmI() {
            return CallContext.current()
                    .orElseThrow()
                    .principal()
                    .map(Principal::getName)
                    .orElse("nobody");
        }
    }

    @RPCXClient(remoteServerName = "secret")
    interface SecretClient {
        String whoAmI();
    }

    @TempDir
    static Path directory;

    private static Certificates servers;
    private static Certificates clients;
    private static Certificates.Pair server;
    private static Certificates.Pair former;
    private static Certificates.Pair expired;
    private static Certificates.Pair elsewhere;
    private static Certificates.Pair alice;

    @BeforeAll
    static void make() throws Exception {
        servers = new Certificates(directory, "servers");
        clients = new Certificates(directory, "clients");
        server = servers.make("server", "server", "dns:localhost,ip:127.0.0.1", "-1d", 30);
        expired = servers.make("expired", "server", "dns:localhost,ip:127.0.0.1", "-9d", 3);
        elsewhere = servers.make("elsewhere", "server", "dns:elsewhere.example.org", "-1d", 30);
        alice = clients.make("alice", "alice", "dns:alice", "-1d", 30);
        former = clients.make("former", "former", "dns:former", "-9d", 3);
    }

    private static Server serve(Tls tls) {
        return Server.builder(RegistryServer.registry(new Secret()))
                .host("127.0.0.1")
                .tls(tls)
                .build()
                .start();
    }

    private static String ask(Tls tls, int port) {
        Client.Builder builder = Client.builder().connectTimeout(Duration.ofSeconds(5));
        try (Client client = (tls == null ? builder : builder.tls(tls)).build()) {
            return client.create(SecretClient.class, "127.0.0.1", port).whoAmI();
        }
    }

    @Test
    void noAuthoritiesAreNotTakenForNobodyAskedFor() {
        Tls plain = Tls.server(server.chain(), server.key());
        assertThatThrownBy(() -> plain.requiringClientsOf(null))
                .isInstanceOf(NullPointerException.class)
                .hasMessageStartingWith("authorities: null (expected: ");
        assertThatThrownBy(() -> Tls.client().trusting(servers.authority).trusting(null))
                .hasMessageStartingWith("authorities: null (expected: ");
        assertThatThrownBy(() -> Tls.server(server.chain(), null)).hasMessageStartingWith("key: null (expected: ");
        assertThatThrownBy(() -> Tls.client().as(alice.chain(), null))
                .hasMessageStartingWith("ownKey: null (expected: ");
        assertThatThrownBy(() ->
                        Server.builder(RegistryServer.registry(new Secret())).tls(Tls.client()))
                .hasMessage("tls: a client's Tls (expected: a server's, Tls.server(chain, key))");
        try (Server asking = serve(plain.requiringClientsOf(clients.authority))) {
            assertRefused(Tls.client().trusting(servers.authority), asking.port());
        }
    }

    private static void assertRefused(Tls tls, int port) {
        assertThatThrownBy(() -> ask(tls, port)).isInstanceOfSatisfying(RPCXException.class, e -> {
            assertThat(e.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
            assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        });
    }

    private static void assertToldOfTls(Client client, int port, String text) {
        SecretClient secret = client.create(SecretClient.class, "127.0.0.1", port);
        assertThatThrownBy(secret::whoAmI)
                .isInstanceOfSatisfying(RPCXException.class, e -> {
                    assertThat(e.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
                    assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                })
                .hasMessageContaining(text + " (expected: TLS on both sides, or on neither)");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aClientWithTlsIsToldThatItsServerUsesNone(boolean isClassicServed) {
        try (Server plain = Server.builder(RegistryServer.registry(new Secret()))
                        .host("127.0.0.1")
                        .classic(isClassicServed)
                        .build()
                        .start();
                Client client = Client.builder().tls(Tls.client()).build()) {
            assertToldOfTls(client, plain.port(), "the peer does not use TLS, and this side does");
        }
    }

    @Test
    void aClientWithoutTlsIsToldThatItsServerUsesIt() {
        try (Server secure = serve(Tls.server(server.chain(), server.key()));
                Client client = Client.builder().build()) {
            assertToldOfTls(client, secure.port(), "the peer uses TLS, and this side does not");
        }
    }

    /** The classic client has no handshake, so its request has been sent when the server's answer comes. */
    @Test
    void soIsAClientOfTheClassicWire() {
        try (Server secure = Server.builder(RegistryServer.registry(new Secret()))
                        .host("127.0.0.1")
                        .tls(Tls.server(server.chain(), server.key()))
                        .classic(true)
                        .build()
                        .start();
                Client client = Client.builder().classic().build()) {
            SecretClient secret = client.create(SecretClient.class, "127.0.0.1", secure.port());
            assertThatThrownBy(secret::whoAmI)
                    .isInstanceOf(RPCXException.class)
                    .hasMessageContaining("the peer uses TLS, and this side does not");
        }
    }

    /** The call fails before anything is sent, and the caller learns the reason. */
    @Test
    void aServerOfTheClassicWireThatIsNotTrustedIsNotCalled() {
        try (Server secure = Server.builder(RegistryServer.registry(new Secret()))
                        .host("127.0.0.1")
                        .tls(Tls.server(server.chain(), server.key()))
                        .classic(true)
                        .build()
                        .start();
                Client trusting = Client.builder()
                        .classic()
                        .tls(Tls.client().trusting(servers.authority))
                        .build();
                Client client = Client.builder().classic().tls(Tls.client()).build()) {
            assertThat(trusting.create(SecretClient.class, "127.0.0.1", secure.port())
                            .whoAmI())
                    .isEqualTo("nobody");
            SecretClient secret = client.create(SecretClient.class, "127.0.0.1", secure.port());
            assertThatThrownBy(secret::whoAmI)
                    .isInstanceOfSatisfying(RPCXException.class, e -> {
                        assertThat(e.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
                        assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                    })
                    .hasStackTraceContaining("PKIX path building failed");
        }
    }

    @Test
    void aTrustedServerIsCalledAndAPlainClientIsNotServed() {
        try (Server secure = serve(Tls.server(server.chain(), server.key()))) {
            assertThat(ask(Tls.client().trusting(servers.authority), secure.port()))
                    .isEqualTo("nobody");
            assertRefused(null, secure.port());
            assertRefused(Tls.client(), secure.port());
        }
    }

    @Test
    void anExpiredCertificateAndOneOfAnotherNameAreRefused() {
        try (Server old = serve(Tls.server(expired.chain(), expired.key()));
                Server other = serve(Tls.server(elsewhere.chain(), elsewhere.key()))) {
            assertRefused(Tls.client().trusting(servers.authority), old.port());
            assertRefused(Tls.client().trusting(servers.authority), other.port());
            Tls expecting = Tls.client().trusting(servers.authority).expecting("elsewhere.example.org");
            assertThat(ask(expecting, other.port())).isEqualTo("nobody");
        }
    }

    @Test
    void aClientWithoutCertificateOrWithAnotherOneIsRefused() {
        try (Server mutual = serve(Tls.server(server.chain(), server.key()).requiringClientsOf(clients.authority))) {
            Tls trusting = Tls.client().trusting(servers.authority);
            assertThat(ask(trusting.as(alice.chain(), alice.key()), mutual.port()))
                    .isEqualTo("CN=alice");
            assertRefused(trusting, mutual.port());
            assertRefused(trusting.as(elsewhere.chain(), elsewhere.key()), mutual.port());
            assertRefused(trusting.as(former.chain(), former.key()), mutual.port());
            LongForm.figure(
                    9,
                    "refused before a request left: a server's certificate that is expired, of another name, of an unknown authority; a client's that is missing, expired, of another authority");
        }
    }

    @Test
    void certificatesChangeUnderLoadAndNoCallFails() throws Exception {
        Path chain = directory.resolve("changing.crt");
        Path key = directory.resolve("changing.key");
        Files.copy(server.chain(), chain);
        Files.copy(server.key(), key);
        Tls tls = Tls.server(chain, key);
        AtomicBoolean stop = new AtomicBoolean();
        AtomicLong calls = new AtomicLong();
        try (Server changing = serve(tls);
                Client client = Client.builder()
                        .tls(Tls.client().trusting(servers.authority))
                        .build()) {
            SecretClient secret = client.create(SecretClient.class, "127.0.0.1", changing.port());
            CompletableFuture<Void> load = CompletableFuture.runAsync(() -> {
                while (!stop.get()) {
                    secret.whoAmI();
                    calls.incrementAndGet();
                }
            });
            Files.copy(elsewhere.chain(), chain, StandardCopyOption.REPLACE_EXISTING);
            Files.copy(elsewhere.key(), key, StandardCopyOption.REPLACE_EXISTING);
            tls.reload();
            Tls expecting = Tls.client().trusting(servers.authority).expecting("elsewhere.example.org");
            long begun = calls.get();
            for (int i = LongForm.of(3, 200); i > 0; i--) {
                Certificates.Pair next = i % 2 == 0 ? server : elsewhere;
                Files.copy(next.chain(), chain, StandardCopyOption.REPLACE_EXISTING);
                Files.copy(next.key(), key, StandardCopyOption.REPLACE_EXISTING);
                tls.reload();
                // each call opens a new connection, while the load goes on
                assertThat(ask(i % 2 == 0 ? Tls.client().trusting(servers.authority) : expecting, changing.port()))
                        .isEqualTo("nobody");
            }
            assertThat(ask(expecting, changing.port())).isEqualTo("nobody");
            assertRefused(Tls.client().trusting(servers.authority), changing.port());
            // files that are half written change nothing
            Files.writeString(key, "-----BEGIN", StandardCharsets.UTF_8);
            assertThatThrownBy(tls::reload).hasMessageContaining("PKCS#8");
            assertThat(ask(expecting, changing.port())).isEqualTo("nobody");
            long before = calls.get();
            org.awaitility.Awaitility.await().until(() -> calls.get() > before + 20);
            stop.set(true);
            load.join();
            LongForm.figure(
                    9,
                    "certificates changed %d times under load: %d calls meanwhile, failed: 0",
                    LongForm.of(3, 200) + 1,
                    calls.get() - begun);
        }
    }

    @Test
    void aKeyOfAnotherCertificateIsRefusedAndWhatWasReadBeforeStays() throws Exception {
        assertThatThrownBy(() -> Tls.server(server.chain(), elsewhere.key()))
                .isExactlyInstanceOf(IllegalArgumentException.class)
                .hasMessage("key " + elsewhere.key() + " is not that of certificate " + server.chain());
        assertThatThrownBy(() -> Tls.client().as(alice.chain(), former.key())).hasMessageContaining("is not that of");
        Path key = directory.resolve("mistaken.key");
        Files.copy(server.key(), key);
        Tls tls = Tls.server(server.chain(), key);
        try (Server running = serve(tls)) {
            Files.copy(elsewhere.key(), key, StandardCopyOption.REPLACE_EXISTING);
            assertThatThrownBy(tls::reload).hasMessage("key " + key + " is not that of certificate " + server.chain());
            assertThat(ask(Tls.client().trusting(servers.authority), running.port()))
                    .isEqualTo("nobody");
        }
    }

    /** Netty accepts more forms of the header than this one. */
    @ParameterizedTest
    @ValueSource(strings = {"-----BEGIN  PRIVATE KEY-----", "-----BEGIN EC PRIVATE KEY-----", "--BEGIN PRIVATE KEY--"})
    void aKeyOfAnotherCertificateIsRefusedWhateverItsHeader(String header) throws Exception {
        String own = Files.readString(server.key());
        String head = own.substring(0, own.indexOf('\n'));
        Path key = directory.resolve("headed.key");
        Files.writeString(
                key,
                Files.readString(elsewhere.key())
                        .replace(head, header)
                        .replace(head.replace("BEGIN", "END"), header.replace("BEGIN", "END")));
        assertThatThrownBy(() -> Tls.server(server.chain(), key)).isInstanceOf(IllegalArgumentException.class);
    }

    /** TLS would let a client resume a session on a new connection without a certificate. RPCX does not allow this. */
    @Test
    void aCertificateThatHasExpiredOpensNoNewConnection() throws Exception {
        Certificates.Pair brief = servers.make("brief", "server", "dns:localhost,ip:127.0.0.1", "-1d+8S", 1);
        Certificates.Pair briefAlice = clients.make("brief-alice", "alice", "dns:alice", "-1d+8S", 1);
        Tls asAlice = Tls.client().trusting(servers.authority).as(briefAlice.chain(), briefAlice.key());
        try (Server mutual = serve(Tls.server(server.chain(), server.key()).requiringClientsOf(clients.authority));
                Server briefly = serve(Tls.server(brief.chain(), brief.key()));
                Client alice = Client.builder().tls(asAlice).build();
                Client other = Client.builder()
                        .tls(Tls.client().trusting(servers.authority))
                        .build()) {
            SecretClient ofMutual = alice.create(SecretClient.class, "127.0.0.1", mutual.port());
            SecretClient ofBrief = other.create(SecretClient.class, "127.0.0.1", briefly.port());
            assertThat(ofMutual.whoAmI()).isEqualTo("CN=alice");
            assertThat(ofBrief.whoAmI()).isEqualTo("nobody");
            await().until(() -> hasExpired(brief) && hasExpired(briefAlice));
            alice.core().dropConnections();
            other.core().dropConnections();
            await().until(() ->
                    mutual.core().connections() == 0 && briefly.core().connections() == 0);
            for (SecretClient each : new SecretClient[] {ofMutual, ofBrief}) {
                assertThatThrownBy(each::whoAmI)
                        .isInstanceOfSatisfying(
                                RPCXException.class,
                                e -> assertThat(e.code()).isEqualTo(RPCXException.Code.UNAVAILABLE));
            }
        }
    }

    private static boolean hasExpired(Certificates.Pair pair) throws Exception {
        try (InputStream in = Files.newInputStream(pair.chain())) {
            X509Certificate own =
                    (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(in);
            return own.getNotAfter().before(new Date());
        }
    }

    /**
     * The TLS of a proxy may send tickets. A ticket that arrives while another connection waits for TCP is not used for
     * that connection.
     */
    @Test
    void ticketsOfOtherServersAreNotUsed() throws Exception {
        servers.make("proxy", "proxy", "dns:proxy.example.org", "-1d", 30);
        SSLEngine engine = servers.context("proxy").createSSLEngine();
        engine.setUseClientMode(false);
        EmbeddedChannel proxy = new EmbeddedChannel(new SslHandler(engine));
        Tls tls = Tls.client().trusting(servers.authority);
        Ledger ledger = new Ledger("tickets", Map.of(), Map.of(), Integer.MAX_VALUE);
        Account account = Objects.requireNonNull(ledger.open(new InetSocketAddress("127.0.0.1", 1)));
        Connecting first = new Connecting();
        Connecting second = new Connecting();
        for (Connecting each : List.of(first, second)) {
            tls.engine().addTo(each, account, new Endpoint("proxy.example.org", 443), TimeUnit.SECONDS.toNanos(20));
        }
        first.connected();
        while (pass(first, proxy) | pass(proxy, first)) {
            first.checkException();
        }
        assertThat(first.pipeline().get(SslHandler.class).handshakeFuture().isSuccess())
                .isTrue();
        second.connected();
        ByteBuf hello = second.readOutbound();
        assertThat(extensions(hello)).contains(SERVER_NAME).doesNotContain(PRE_SHARED_KEY);
        hello.release();
        for (EmbeddedChannel each : List.of(first, second, proxy)) {
            each.finishAndReleaseAll();
        }
        account.close();
    }

    private static final int SERVER_NAME = 0;
    private static final int PRE_SHARED_KEY = 41;

    /** A channel whose handlers are added before TCP has connected it. */
    private static final class Connecting extends EmbeddedChannel {
        private boolean isConnected;

        @Override
        public boolean isActive() {
            return isConnected && super.isActive();
        }

        void connected() {
            isConnected = true;
            pipeline().fireChannelActive();
        }
    }

    private static boolean pass(EmbeddedChannel from, EmbeddedChannel to) {
        boolean hasPassed = false;
        for (ByteBuf bytes; (bytes = from.readOutbound()) != null; hasPassed = true) {
            to.writeInbound(bytes);
        }
        return hasPassed;
    }

    /** Returns the types of the extensions in a client's hello, which is one record. */
    private static List<Integer> extensions(ByteBuf hello) {
        ByteBuf rest = hello.duplicate();
        // these are the headers of record and message, the version and the random bytes
        rest.skipBytes(5 + 4 + 2 + 32);
        rest.skipBytes(rest.readUnsignedByte());
        rest.skipBytes(rest.readUnsignedShort());
        rest.skipBytes(rest.readUnsignedByte());
        rest.skipBytes(2);
        List<Integer> types = new ArrayList<>();
        while (rest.isReadable()) {
            types.add(rest.readUnsignedShort());
            rest.skipBytes(rest.readUnsignedShort());
        }
        return types;
    }

    @Test
    void aServersNameIsOne() {
        assertThatThrownBy(() -> Tls.client().expecting("")).hasMessageContaining("name \"\"");
        assertThatThrownBy(() -> Tls.client().expecting("a b")).hasMessageContaining("name \"a b\"");
    }

    /** An attacker who controls these answers can name a host for which he has a certificate. */
    @Test
    void aClientWhoseInstancesAreNamedByOthersExpectsAName() {
        try (Client client = Client.builder().tls(Tls.client()).build()) {
            assertThatThrownBy(() -> client.create(SecretClient.class, Endpoints.srv("_secret._tcp.example.org")))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("Tls.expecting");
            // these names are the caller's own
            client.create(SecretClient.class, Endpoints.of(new Endpoint("127.0.0.1", 1)));
        }
        try (Client client = Client.builder()
                .tls(Tls.client().expecting("secret.example.org"))
                .build()) {
            client.create(SecretClient.class, listener -> () -> {});
        }
    }

    @Test
    void aKeyOfRsaAndItsCertificateFit() throws Exception {
        Certificates.Pair rsa = servers.make("rsa", "RSA", "server", "dns:localhost,ip:127.0.0.1", "-1d", 30);
        try (Server running = serve(Tls.server(rsa.chain(), rsa.key()))) {
            assertThat(ask(Tls.client().trusting(servers.authority), running.port()))
                    .isEqualTo("nobody");
        }
        Certificates.Pair other = servers.make("rsa2", "RSA", "server", "dns:localhost,ip:127.0.0.1", "-1d", 30);
        assertThatThrownBy(() -> Tls.server(rsa.chain(), other.key())).hasMessageContaining("is not that of");
        assertThatThrownBy(() -> Tls.server(rsa.chain(), server.key())).hasMessageContaining("is not that of");
    }

    @Test
    void aFileThatIsNoCertificateIsNamedAlone() throws Exception {
        Path empty = Files.writeString(directory.resolve("empty.crt"), "");
        assertThatThrownBy(() -> Tls.client().trusting(empty))
                .hasMessageContaining("authorities " + empty)
                .hasMessageNotContaining("null");
    }

    @Test
    void aMistakeInTheFilesOrTheSideIsToldAtOnce() {
        assertThatThrownBy(() -> Tls.server(server.key(), server.chain())).hasMessageContaining("PEM");
        assertThatThrownBy(() -> Tls.client().requiringClientsOf(clients.authority))
                .hasMessageContaining("client's Tls");
        assertThatThrownBy(() -> Client.builder().tls(Tls.server(server.chain(), server.key())))
                .hasMessageContaining("server's Tls");
    }

    /** With TLS 1.2 a client may start one handshake after the other, all of them on an event loop. */
    @Test
    void aServerSpeaksNoTlsInWhichAClientMayNegotiateAgain() throws Exception {
        javax.net.ssl.SSLContext anyone = javax.net.ssl.SSLContext.getInstance("TLS");
        anyone.init(null, io.netty.handler.ssl.util.InsecureTrustManagerFactory.INSTANCE.getTrustManagers(), null);
        try (Server listening = serve(Tls.server(server.chain(), server.key()))) {
            for (String version : new String[] {"TLSv1.3", "TLSv1.2"}) {
                try (javax.net.ssl.SSLSocket socket = (javax.net.ssl.SSLSocket)
                        anyone.getSocketFactory().createSocket("127.0.0.1", listening.port())) {
                    socket.setEnabledProtocols(new String[] {version});
                    if (version.equals("TLSv1.3")) {
                        socket.startHandshake();
                    } else {
                        assertThatThrownBy(socket::startHandshake).isInstanceOf(java.io.IOException.class);
                    }
                }
            }
        }
    }
}
