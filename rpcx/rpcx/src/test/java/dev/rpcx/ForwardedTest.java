package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.TimedContext;
import dev.rpcx.internal.call.Token;
import io.netty.util.concurrent.Ticker;
import java.nio.charset.StandardCharsets;
import java.security.Principal;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.ZoneOffset;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests how the name of a caller is forwarded over three services. The name arrives, and only a service that may
 * forward it can set it.
 */
@Timeout(60)
class ForwardedTest {
    private static final Map<String, byte[]> SECRETS = Map.of(
            "alice", secret("alice"),
            "bob", secret("bob"),
            "shop", secret("shop"),
            "stock", secret("stock"));
    private static final Set<String> FORWARDING = Set.of("shop", "stock");
    private static final InstantSource CLOCK = Clock.fixed(Instant.parse("2026-01-01T00:00:00Z"), ZoneOffset.UTC);

    private static byte[] secret(String name) {
        return ("the own secret of " + name).getBytes(StandardCharsets.UTF_8);
    }

    /** The last service returns the principal that it has seen, and the services over which the call has come. */
    @RPCXServer("ledger")
    static final class Ledger {
        @Method
        String who() {
            Principal principal =
                    CallContext.current().orElseThrow().principal().orElseThrow();
            return principal.getName() + " via " + ((Tokens.Caller) principal).via();
        }

        @Method
        String other() {
            return who();
        }
    }

    @RPCXClient(remoteServerName = "ledger")
    interface LedgerClient {
        String who();

        String other();
    }

    @RPCXServer("stock")
    record Stock(LedgerClient ledger) {
        @Method
        String who() {
            return ledger.who();
        }
    }

    @RPCXClient(remoteServerName = "stock")
    interface StockClient {
        String who();
    }

    @RPCXServer("shop")
    record Shop(StockClient stock) {
        @Method
        String who() {
            return stock.who();
        }
    }

    @RPCXClient(remoteServerName = "shop")
    interface ShopClient {
        String who();
    }

    private static Server ledger;
    private static Server stock;
    private static Server shop;
    private static Client ofStock;
    private static Client ofShop;

    private static Server serving(Object service) {
        return Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .interceptor(Tokens.requiring(SECRETS::get, FORWARDING::contains, CLOCK))
                .build()
                .start();
    }

    private static Client client(Interceptor... interceptors) {
        Client.Builder builder = Client.builder();
        for (Interceptor interceptor : interceptors) {
            builder.interceptor(interceptor);
        }
        return builder.build();
    }

    private static Interceptor signing(String name) {
        return Tokens.signing(name, secret(name), CLOCK);
    }

    private static Interceptor forwarding(String name) {
        return Tokens.forwarding(name, secret(name), CLOCK);
    }

    @BeforeAll
    static void start() {
        ledger = serving(new Ledger());
        ofStock = client(forwarding("stock"));
        stock = serving(new Stock(ofStock.create(LedgerClient.class, "127.0.0.1", ledger.port())));
        ofShop = client(forwarding("shop"));
        shop = serving(new Shop(ofShop.create(StockClient.class, "127.0.0.1", stock.port())));
    }

    @AfterAll
    static void stop() {
        ofShop.close();
        ofStock.close();
        for (Server server : new Server[] {shop, stock, ledger}) {
            server.stop(Duration.ofMillis(200));
        }
    }

    private static String askLedger(Interceptor... interceptors) {
        try (Client client = client(interceptors)) {
            return client.create(LedgerClient.class, "127.0.0.1", ledger.port()).who();
        }
    }

    private static void assertRefused(Interceptor... interceptors) {
        assertThatThrownBy(() -> askLedger(interceptors)).isInstanceOfSatisfying(RPCXException.class, e -> {
            assertThat(e.code()).isEqualTo(RPCXException.Code.UNAUTHENTICATED);
            assertThat(e).hasMessage("no valid token");
        });
    }

    /**
     * Returns the token that {@code forwarding} adds to a call while its service serves {@code caller}. The call is
     * kept back, so the token has not been used.
     */
    private static String tokenOf(Interceptor forwarding, String caller) {
        AtomicReference<String> token = new AtomicReference<>();
        TimedContext serving = new TimedContext(
                Ticker.systemTicker().nanoTime() + 1_000_000_000L, Metadata.EMPTY, null, Ticker.systemTicker());
        serving.authenticate(new Tokens.Caller(caller, List.of()));
        CurrentCall.set(serving);
        try {
            askLedger(forwarding, (call, next) -> {
                token.set(call.metadata().get("rpcx-token"));
                return "kept back";
            });
        } finally {
            CurrentCall.set(null);
        }
        return token.get();
    }

    private static Interceptor with(String token) {
        return (call, next) -> next.proceed(call.with("rpcx-token", token));
    }

    @Test
    void theLastServiceKnowsWhoCalledTheFirst() {
        try (Client alice = client(signing("alice"));
                Client bob = client(signing("bob"))) {
            assertThat(alice.create(ShopClient.class, "127.0.0.1", shop.port()).who())
                    .isEqualTo("alice via [shop, stock]");
            assertThat(bob.create(ShopClient.class, "127.0.0.1", shop.port()).who())
                    .isEqualTo("bob via [shop, stock]");
        }
        // a service may also call for itself
        assertThat(askLedger(forwarding("shop"))).isEqualTo("shop via []");
        LongForm.figure(9, "a principal over three hops: known at the third; forged, expired or replayed: refused");
    }

    @Test
    void whatForwardsOnlySignsNothingWithoutACaller() {
        assertThatThrownBy(() -> askLedger(Tokens.forwardingOnly("shop", secret("shop"))))
                .isInstanceOfSatisfying(RPCXException.class, e -> {
                    assertThat(e.code()).isEqualTo(RPCXException.Code.UNAUTHENTICATED);
                    assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                    assertThat(e).hasMessageContaining("no caller on this thread");
                });
        Token.Received received =
                Objects.requireNonNull(Token.read(tokenOf(Tokens.forwardingOnly("shop", secret("shop")), "alice")));
        assertThat(received.token().caller()).isEqualTo("alice");
    }

    @Test
    void aClientCannotSpeakForAnother() {
        assertRefused(with(tokenOf(forwarding("bob"), "alice")));
        // a client cannot speak as a service whose secret it does not have
        assertRefused(with(tokenOf(Tokens.forwarding("shop", secret("bob"), CLOCK), "alice")));
        // what it says of itself counts for nothing
        assertThat(askLedger(signing("bob"), (call, next) -> next.proceed(call.with("principal", "alice"))))
                .isEqualTo("bob via []");
    }

    /** Returns a token with other claims under the signature of this token. */
    private static String claiming(String token, UnaryOperator<Token> change) {
        Token said = Objects.requireNonNull(Token.read(token)).token();
        byte[] claims =
                Base64.getUrlDecoder().decode(change.apply(said).signed(Token.key(secret("nobody")), "ledger", "who"));
        byte[] signed = Base64.getUrlDecoder().decode(token);
        System.arraycopy(signed, signed.length - 32, claims, claims.length - 32, 32);
        return Base64.getUrlEncoder().withoutPadding().encodeToString(claims);
    }

    @Test
    void aNameChangedOnTheWayIsRefused() {
        String token = tokenOf(forwarding("shop"), "bob");
        assertRefused(with(claiming(
                token, said -> new Token(said.expiresMillis(), said.nonce(), said.signer(), "alice", List.of()))));
        assertRefused(with(claiming(
                token, said -> new Token(said.expiresMillis(), said.nonce(), said.signer(), "bob", List.of("alice")))));
        assertRefused(with(
                claiming(token, said -> new Token(said.expiresMillis(), said.nonce(), "alice", "bob", List.of()))));
        // the name cannot be cut out either, to act as the service itself
        assertRefused(with(claiming(
                token, said -> new Token(said.expiresMillis(), said.nonce(), said.signer(), null, List.of()))));
        assertThat(askLedger(with(claiming(token, said -> said)))).isEqualTo("bob via [shop]");
    }

    @Test
    void whatIsSignedForOneMethodReadsAsNoOther() {
        Token.Received received =
                Objects.requireNonNull(Token.read(new Token(0, new byte[Token.NONCE_BYTES], "shop", null, List.of())
                        .signed(Token.key(secret("shop")), "stock.a", "bc")));
        String whole = "stock.abc";
        for (int cut = 0; cut <= whole.length(); cut++) {
            assertThat(received.isSignedBy(Token.key(secret("shop")), whole.substring(0, cut), whole.substring(cut)))
                    .as("cut at %d", cut)
                    .isEqualTo(cut == 7);
        }
    }

    @Test
    void aForwardedTokenIsGoodForOneUseOneMethodAndHalfAMinute() {
        String token = tokenOf(forwarding("shop"), "alice");
        try (Client client = client(with(token))) {
            LedgerClient calls = client.create(LedgerClient.class, "127.0.0.1", ledger.port());
            assertThatThrownBy(calls::other).hasMessage("no valid token");
            assertThat(calls.who()).isEqualTo("alice via [shop]");
            assertThatThrownBy(calls::who).hasMessage("no valid token");
        }
        InstantSource past = Clock.offset(
                Clock.fixed(CLOCK.instant(), ZoneOffset.UTC),
                Duration.ofSeconds(41).negated());
        assertRefused(with(tokenOf(Tokens.forwarding("shop", secret("shop"), past), "alice")));
    }

    @Test
    void aWayOfTooManyServicesIsRefused() {
        TimedContext serving = new TimedContext(
                Ticker.systemTicker().nanoTime() + 1_000_000_000L, Metadata.EMPTY, null, Ticker.systemTicker());
        serving.authenticate(new Tokens.Caller("alice", java.util.Collections.nCopies(16, "loop")));
        CurrentCall.set(serving);
        try {
            assertThatThrownBy(() -> askLedger(forwarding("shop"))).hasMessageContaining("forwarded by 16");
        } finally {
            CurrentCall.set(null);
        }
    }

    @RPCXClient(remoteServerName = "YWRtaW4.ledger")
    interface AttackersClient {
        String who();
    }

    /**
     * A service has a name that its owner, an attacker, chose. A gateway that may forward calls it. What the gateway
     * signs for this service counts nowhere else.
     */
    @Test
    void aServicesNameNeverReadsAsForwardedFor() {
        AtomicReference<String> sent = new AtomicReference<>();
        try (Client gateway = client(signing("shop"), (call, next) -> {
            sent.set(call.metadata().get("rpcx-token"));
            return "kept back";
        })) {
            gateway.create(AttackersClient.class, "127.0.0.1", ledger.port()).who();
        }
        Token said = Objects.requireNonNull(Token.read(sent.get())).token();
        assertThat(said.caller()).isNull();
        assertRefused(with(claiming(
                sent.get(), own -> new Token(own.expiresMillis(), own.nonce(), own.signer(), "admin", List.of()))));
        assertRefused(with(sent.get()));
    }
}
