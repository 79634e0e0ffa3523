package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.call.CallInvocation;
import dev.rpcx.internal.call.Token;
import dev.rpcx.internal.call.UsedTokens;
import dev.rpcx.internal.server.HandledContext;
import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.security.Principal;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.ZoneOffset;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests tokens that are good, forged, old, used twice, or meant for another call. */
@Timeout(60)
class TokensTest {
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

        @Method
        String other() {
            return "other";
        }
    }

    @RPCXClient(remoteServerName = "secret")
    interface SecretClient {
        String whoAmI();

        String other();
    }

    private static final byte[] ALICE = "alice's own secret".getBytes(java.nio.charset.StandardCharsets.UTF_8);
    private static final byte[] BOB = "bob's own, another".getBytes(java.nio.charset.StandardCharsets.UTF_8);
    private static final Instant NOW = Instant.parse("2026-01-01T00:00:00Z");
    private static final InstantSource CLOCK = Clock.fixed(NOW, ZoneOffset.UTC);

    private interface Check {
        void check(int port);
    }

    private static void withServer(Check check) {
        Server server = Server.builder(RegistryServer.registry(new Secret()))
                .interceptor(Tokens.requiring(Map.of("alice", ALICE, "bob", BOB)::get, nobody -> false, CLOCK))
                .build()
                .start();
        try {
            check.check(server.port());
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    private static String ask(int port, Interceptor... interceptors) {
        Client.Builder builder = Client.builder();
        for (Interceptor interceptor : interceptors) {
            builder.interceptor(interceptor);
        }
        try (Client client = builder.build()) {
            return client.create(SecretClient.class, "127.0.0.1", port).whoAmI();
        }
    }

    private static void assertRefused(int port, Interceptor... interceptors) {
        assertThatThrownBy(() -> ask(port, interceptors)).isInstanceOfSatisfying(RPCXException.class, e -> {
            assertThat(e.code()).isEqualTo(RPCXException.Code.UNAUTHENTICATED);
            assertThat(e).hasMessage("no valid token");
        });
    }

    @Test
    void aGoodTokenNamesItsSignerAndNobodyElse() {
        withServer(port -> {
            assertThat(ask(port, Tokens.signing("alice", ALICE, CLOCK))).isEqualTo("alice");
            assertRefused(port);
            assertRefused(port, Tokens.signing("alice", BOB, CLOCK));
            assertRefused(port, Tokens.signing("mallory", BOB, CLOCK));
            // the server ignores what a client says of itself
            assertRefused(port, (call, next) -> next.proceed(call.with("principal", "alice")));
            assertRefused(port, (call, next) -> next.proceed(call.with("rpcx-token", "a.b.c.d")));
            assertRefused(port, (call, next) -> next.proceed(call.with("rpcx-token", "....")));
        });
    }

    @Test
    void aTokenThatHasExpiredOrLastsTooLongIsRefused() {
        withServer(port -> {
            Duration past = Duration.ofSeconds(41);
            assertRefused(port, Tokens.signing("alice", ALICE, Clock.offset(fixed(), past.negated())));
            assertRefused(port, Tokens.signing("alice", ALICE, Clock.offset(fixed(), past)));
            Duration within = Duration.ofSeconds(5);
            assertThat(ask(port, Tokens.signing("alice", ALICE, Clock.offset(fixed(), within))))
                    .isEqualTo("alice");
        });
    }

    private static Clock fixed() {
        return Clock.fixed(NOW, ZoneOffset.UTC);
    }

    /** Returns a token for {@code secret/whoAmI} that has not been sent. */
    private static String unsent(Interceptor signing) {
        AtomicReference<String> kept = new AtomicReference<>();
        Interceptor keeping = (call, next) -> {
            kept.set(call.metadata().get("rpcx-token"));
            return "kept back";
        };
        assertThat(ask(1, signing, keeping)).isEqualTo("kept back");
        return kept.get();
    }

    private static Interceptor with(String token) {
        return (call, next) -> next.proceed(call.with("rpcx-token", token));
    }

    @Test
    void aTokenIsGoodForOneUseAndOneMethod() {
        withServer(port -> {
            String token = unsent(Tokens.signing("alice", ALICE, CLOCK));
            try (Client client = Client.builder().interceptor(with(token)).build()) {
                SecretClient secret = client.create(SecretClient.class, "127.0.0.1", port);
                assertThatThrownBy(secret::other).hasMessage("no valid token");
                assertThat(secret.whoAmI()).isEqualTo("alice");
                assertThatThrownBy(secret::whoAmI).hasMessage("no valid token");
            }
            assertRefused(port, with(token));
        });
        LongForm.figure(
                9, "refused, all alike: a token that is expired, used before, for another method, of a wrong secret");
    }

    @Test
    void aTokenHasOneTextOnly() {
        withServer(port -> {
            String token = unsent(Tokens.signing("alice", ALICE, CLOCK));
            // the token has 29 bytes of claims, 5 of the name and 32 of the signature: some bits of the last character
            // mean nothing
            assertThat(token.length() % 4).isNotZero();
            char last = token.charAt(token.length() - 1);
            String others = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
            for (int i = 0; i < others.length(); i++) {
                if (others.charAt(i) != last) {
                    assertRefused(port, with(token.substring(0, token.length() - 1) + others.charAt(i)));
                }
            }
            for (String around : new String[] {"=", "==", " ", "\n", ".", "AAAA"}) {
                assertRefused(port, with(token + around));
                assertRefused(port, with(around + token));
            }
            assertThat(ask(port, with(token))).isEqualTo("alice");
        });
    }

    @Test
    void nothingThatIsNearlyATokenIsTaken() {
        withServer(port -> {
            byte[] good = java.util.Base64.getUrlDecoder().decode(unsent(Tokens.signing("alice", ALICE, CLOCK)));
            // all of the several hundred calls use one connection
            AtomicReference<String> next = new AtomicReference<>("");
            try (Client client = Client.builder()
                    .interceptor((call, rest) -> rest.proceed(call.with("rpcx-token", next.get())))
                    .build()) {
                SecretClient secret = client.create(SecretClient.class, "127.0.0.1", port);
                java.util.function.Consumer<byte[]> refused = bytes -> {
                    next.set(java.util.Base64.getUrlEncoder().withoutPadding().encodeToString(bytes));
                    assertThatThrownBy(secret::whoAmI).hasMessage("no valid token");
                };
                for (int bit = 0; bit < good.length * 8; bit++) {
                    byte[] changed = good.clone();
                    changed[bit / 8] ^= (byte) (1 << bit % 8);
                    refused.accept(changed);
                }
                for (int length = 0; length < good.length; length++) {
                    refused.accept(java.util.Arrays.copyOf(good, length));
                }
                refused.accept(java.util.Arrays.copyOf(good, good.length + 1));
                next.set("A".repeat(8000));
                assertThatThrownBy(secret::whoAmI).hasMessage("no valid token");
                next.set(java.util.Base64.getUrlEncoder().withoutPadding().encodeToString(good));
                assertThat(secret.whoAmI()).isEqualTo("alice");
            }
        });
    }

    @Test
    void noTimeThatATokenClaimsOverflows() {
        withServer(port -> {
            for (long expires : new long[] {Long.MIN_VALUE, -1, 0, Long.MAX_VALUE, Long.MAX_VALUE - 10_000}) {
                Token token = new Token(expires, new byte[Token.NONCE_BYTES], "alice", null, java.util.List.of());
                assertRefused(port, with(token.signed(Token.key(ALICE), "secret", "whoAmI")));
            }
        });
    }

    @Test
    void whatCannotFindASecretRefusesAndSaysNothing() {
        java.util.function.Function<String, byte[]> failing = name -> {
            throw new IllegalStateException("the database at db1 is down");
        };
        java.util.function.Function<String, byte[]> tooShort = name -> new byte[3];
        for (java.util.function.Function<String, byte[]> secrets : java.util.List.of(failing, tooShort)) {
            Server server = Server.builder(RegistryServer.registry(new Secret()))
                    .interceptor(Tokens.requiring(secrets))
                    .build()
                    .start();
            try {
                assertRefused(server.port(), Tokens.signing("alice", ALICE));
            } finally {
                server.stop(Duration.ofMillis(200));
            }
        }
    }

    @Test
    void oneUseHoldsForAllServersThatShareWhatRemembersIt() {
        java.util.Set<String> shared = java.util.concurrent.ConcurrentHashMap.newKeySet();
        Tokens.OneUse oneUse = (signer, token, until) -> shared.add(signer + token);
        Tokens.OneUse failing = (signer, token, until) -> {
            throw new IllegalStateException("the store at db2 is down");
        };
        Server[] servers = new Server[3];
        for (int i = 0; i < servers.length; i++) {
            servers[i] = Server.builder(RegistryServer.registry(new Secret()))
                    .interceptor(
                            Tokens.requiring(Map.of("alice", ALICE)::get, nobody -> false, i < 2 ? oneUse : failing))
                    .build()
                    .start();
        }
        try {
            String token = unsent(Tokens.signing("alice", ALICE));
            assertThat(ask(servers[0].port(), with(token))).isEqualTo("alice");
            assertRefused(servers[1].port(), with(token));
            assertThatThrownBy(() -> ask(servers[2].port(), Tokens.signing("alice", ALICE)))
                    .isInstanceOfSatisfying(RPCXException.class, e -> {
                        assertThat(e.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
                        assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                        assertThat(e).hasMessage("tokens cannot be checked now");
                    });
        } finally {
            for (Server server : servers) {
                server.stop(Duration.ofMillis(200));
            }
        }
    }

    @Test
    void oneUseIsOneForAllServersOfTheProcess() {
        Server[] servers = new Server[2];
        for (int i = 0; i < servers.length; i++) {
            servers[i] = Server.builder(RegistryServer.registry(new Secret()))
                    .interceptor(Tokens.requiring(Map.of("alice", ALICE)::get))
                    .build()
                    .start();
        }
        try {
            String token = unsent(Tokens.signing("alice", ALICE));
            assertThat(ask(servers[0].port(), with(token))).isEqualTo("alice");
            assertRefused(servers[1].port(), with(token));
        } finally {
            for (Server server : servers) {
                server.stop(Duration.ofMillis(200));
            }
        }
    }

    @Test
    void whatFailsBehindTheCheckIsLoggedOnceAMinuteWithACount() {
        java.util.List<String> logged = new java.util.concurrent.CopyOnWriteArrayList<>();
        java.util.logging.Logger logger = java.util.logging.Logger.getLogger(Tokens.class.getName());
        java.util.logging.Handler handler = new java.util.logging.Handler() {
            @Override
            public void publish(java.util.logging.LogRecord entry) {
                logged.add(entry.getMessage());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        AtomicReference<Instant> now = new AtomicReference<>(NOW);
        Server server = Server.builder(RegistryServer.registry(new Secret()))
                .interceptor(Tokens.requiring(
                        name -> {
                            throw new IllegalStateException("the database at db1 is down");
                        },
                        nobody -> false,
                        now::get))
                .build()
                .start();
        logger.addHandler(handler);
        try {
            for (int i = 0; i < 5; i++) {
                assertRefused(server.port(), Tokens.signing("alice", ALICE, now::get));
            }
            assertThat(logged).hasSize(1);
            now.set(NOW.plusSeconds(61));
            // a peer that only sends a name has not proved anything yet
            assertRefused(server.port(), Tokens.signing("bob\" of 10.0.0.1 \u202E", BOB, now::get));
            assertThat(logged).hasSize(2);
            assertThat(logged.get(1)).contains("\"bob\\\" of 10.0.0.1 \\u202e\"", "4 more");
        } finally {
            logger.removeHandler(handler);
            server.stop(Duration.ofMillis(200));
        }
    }

    @Test
    void namesThatCannotBeToldApartAreRefused() {
        for (String name : new String[] {"", "a\nb", "a\0", "\u2028", "\uD800", "x".repeat(256)}) {
            assertThatThrownBy(() -> Tokens.signing(name, ALICE)).hasMessageContaining("control characters");
            assertThatThrownBy(() -> Tokens.forwarding(name, ALICE)).hasMessageContaining("control characters");
        }
        withServer(port -> {
            // these tokens are signed with the right secret, and are refused all the same
            for (String name : new String[] {"a\nb", "\u0085"}) {
                Token token =
                        new Token(NOW.plusSeconds(30).toEpochMilli(), new byte[16], name, null, java.util.List.of());
                assertRefused(port, with(token.signed(Token.key(ALICE), "secret", "whoAmI")));
            }
        });
    }

    /** These are the test vectors of docs/security.md. Other implementations are compared with the same bytes. */
    @Test
    void theDocumentedTokensAreTheseBytes() throws Exception {
        byte[] nonce = new byte[Token.NONCE_BYTES];
        for (int i = 0; i < nonce.length; i++) {
            nonce[i] = (byte) i;
        }
        long expires = 1_767_225_630_000L;
        byte[] secret = "0123456789abcdef".getBytes(java.nio.charset.StandardCharsets.US_ASCII);
        String own = new Token(expires, nonce, "alice", null, java.util.List.of())
                .signed(Token.key(secret), "ledger", "who");
        String forwarded = new Token(expires, nonce, "shop", "alice", java.util.List.of("gate"))
                .signed(Token.key(secret), "ledger", "who");
        String documented = java.nio.file.Files.readString(java.nio.file.Path.of("../../docs/security.md"));
        assertThat(documented).contains("\n" + own + "\n").contains("\n" + forwarded + "\n");
        assertThat(java.util.Objects.requireNonNull(Token.read(own)).token().signer())
                .isEqualTo("alice");
    }

    @Test
    void aShortSecretIsRefused() {
        assertThatThrownBy(() -> Tokens.signing("alice", new byte[15])).hasMessageContaining("16");
    }

    @Test
    void usedTokensAreForgottenWhenTheirTimeIsOverAndNeverBefore() {
        AtomicReference<Instant> now = new AtomicReference<>(NOW);
        // the name of a signer takes as much room as two tokens
        UsedTokens used = new UsedTokens(14, now::get);
        assertThat(used.first("alice", "1", NOW.plusSeconds(10))).isTrue();
        assertThat(used.first("alice", "1", NOW.plusSeconds(10))).isFalse();
        for (int i = 2; i <= 7; i++) {
            assertThat(used.first("alice", "2" + i, NOW.plusSeconds(20))).isTrue();
        }
        // the tokens of one signer may take half of the room, and no token is forgotten to make room for a new one
        assertThatThrownBy(() -> used.first("alice", "3", NOW.plusSeconds(20)))
                .isInstanceOfSatisfying(RPCXException.class, e -> {
                    assertThat(e.code()).isEqualTo(RPCXException.Code.OVERLOADED);
                    assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                });
        assertThat(used.first("bob", "b1", NOW.plusSeconds(20))).isTrue();
        assertThatThrownBy(() -> used.first("erin", "4", NOW.plusSeconds(20))).hasMessageContaining("too many");
        assertThat(used.first("bob", "b2", NOW.plusSeconds(10))).isTrue();
        assertThat(used.first("bob", "b3", NOW.plusSeconds(10))).isTrue();
        assertThatThrownBy(() -> used.first("erin", "4", NOW.plusSeconds(20))).hasMessageContaining("too many");
        assertThat(used.first("alice", "1", NOW.plusSeconds(10))).isFalse();
        now.set(NOW.plusSeconds(11));
        assertThat(used.first("erin", "4", NOW.plusSeconds(20))).isTrue();
        assertThat(used.remembered()).isEqualTo(8);
        // a clock that goes back does not bring back what was forgotten
        now.set(NOW);
        assertThatThrownBy(() -> used.first("alice", "1", NOW.plusSeconds(10))).hasMessageContaining("gone back");
        now.set(NOW.plusSeconds(60));
        assertThat(used.first("alice", "5", NOW.plusSeconds(90))).isTrue();
        assertThat(used.remembered()).isEqualTo(1);
    }

    /**
     * The token may have been used and forgotten. Its caller may try again, because the token was good when it was
     * checked.
     */
    @Test
    void aTokenWhoseTimeEndsWhileItIsLookedAtIsNotTakenForAForgedOne() {
        UsedTokens used = new UsedTokens(100, () -> NOW.plusSeconds(41));
        Server server = Server.builder(RegistryServer.registry(new Secret()))
                .interceptor(Tokens.requiring(
                        Map.of("alice", ALICE)::get, nobody -> false, new Tokens.InMemory(used), CLOCK))
                .build()
                .start();
        try {
            assertThatThrownBy(() -> ask(server.port(), Tokens.signing("alice", ALICE, CLOCK)))
                    .isInstanceOfSatisfying(RPCXException.class, e -> {
                        assertThat(e.code()).isEqualTo(RPCXException.Code.OVERLOADED);
                        assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                        assertThat(e).hasMessageContaining("expired");
                    });
        } finally {
            server.stop(Duration.ofMillis(200));
        }
        assertThat(used.remembered()).isEqualTo(0);
    }

    /** A store that forgets each token at the time it is given, as Redis does. It uses its own clock. */
    private record Forgetful(InstantSource clock, Map<String, Instant> kept) implements Tokens.OneUse {
        @Override
        public boolean first(String signer, String token, Instant until) {
            Instant now = clock.instant();
            kept.values().removeIf(end -> !end.isAfter(now));
            return kept.putIfAbsent(token, until) == null;
        }
    }

    /**
     * The copy is checked just before it expires. Then the store is asked after that time, or by a clock that is ahead.
     */
    @ParameterizedTest
    @CsvSource({"39, 3, 0", "39, 30, 0", "39, 0, 9", "39, 3, 9", "39, 3, -9"})
    void aCopyThatComesAtItsEndIsNotTakenForAFirstUse(int copied, int looked, int ahead) throws Throwable {
        AtomicReference<Instant> now = new AtomicReference<>(NOW);
        AtomicReference<Duration> takes = new AtomicReference<>(Duration.ZERO);
        Interceptor requiring = Tokens.requiring(
                Map.of("alice", ALICE)::get,
                forwarder -> {
                    now.updateAndGet(before -> before.plus(takes.get()));
                    return true;
                },
                new Forgetful(() -> now.get().plusSeconds(ahead), new HashMap<>()),
                now::get);
        AtomicReference<String> kept = new AtomicReference<>();
        HandledContext served =
                new HandledContext(0, Long.MAX_VALUE, Metadata.EMPTY, () -> "carol", Ticker.systemTicker());
        served.run(() -> kept.set(unsent(Tokens.forwarding("alice", ALICE, now::get))));
        Metadata sent = Metadata.EMPTY.with("rpcx-token", kept.get());
        Interceptor.Next handler = known -> "handled";
        assertThat(requiring.intercept(fresh(sent), handler)).isEqualTo("handled");
        now.set(NOW.plusSeconds(copied));
        takes.set(Duration.ofSeconds(looked));
        assertThatThrownBy(() -> requiring.intercept(fresh(sent), handler))
                .isInstanceOfSatisfying(RPCXException.class, e -> {
                    assertThat(e.code()).isIn(RPCXException.Code.OVERLOADED, RPCXException.Code.UNAUTHENTICATED);
                    assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                });
    }

    /** Returns a call that has just arrived. */
    private static Interceptor.Invocation fresh(Metadata sent) {
        MockTicker ticker = Ticker.newMockTicker();
        HandledContext call = new HandledContext(0, Duration.ofMinutes(2).toNanos(), Metadata.EMPTY, null, ticker);
        return new CallInvocation("secret", "whoAmI", new Object[0], sent, call);
    }

    /**
     * The clocks of the signers and of the server were ahead. Tokens that were signed then were remembered, and have
     * been forgotten.
     */
    @Test
    void aClockThatIsSetBackWithThoseOfTheSignersRefusesWhatItHasForgottenUntilThatTimeComesAgain() {
        AtomicReference<Instant> now = new AtomicReference<>(NOW.plusSeconds(600));
        UsedTokens used = new UsedTokens(100, now::get);
        assertThat(used.first("alice", "1", NOW.plusSeconds(640))).isTrue();
        now.set(NOW.plusSeconds(641));
        assertThat(used.first("alice", "2", NOW.plusSeconds(681))).isTrue();
        for (int second : new int[] {41, 300, 600}) {
            now.set(NOW.plusSeconds(second));
            assertThatThrownBy(() -> used.first("alice", "3", NOW.plusSeconds(second + 40)))
                    .hasMessageContaining("gone back");
        }
        now.set(NOW.plusSeconds(601));
        assertThat(used.first("alice", "3", NOW.plusSeconds(641))).isTrue();
    }

    /** Only a token that expires before the last forgotten one may have been used. */
    @Test
    void aClockThatWasAheadForAMomentCostsNoMoreThanTheTimeOfTheTokensItForgot() {
        AtomicReference<Instant> now = new AtomicReference<>(NOW);
        UsedTokens used = new UsedTokens(100, now::get);
        assertThat(used.first("alice", "1", NOW.plusSeconds(40))).isTrue();
        now.set(NOW.plusSeconds(3_600));
        assertThat(used.first("alice", "ahead", NOW.plusSeconds(3_640))).isTrue();
        now.set(NOW.plusSeconds(1));
        assertThatThrownBy(() -> used.first("alice", "1", NOW.plusSeconds(40))).hasMessageContaining("gone back");
        assertThat(used.first("alice", "2", NOW.plusSeconds(41))).isTrue();
        assertThat(used.first("alice", "2", NOW.plusSeconds(41))).isFalse();
        assertThat(used.first("alice", "ahead", NOW.plusSeconds(3_640))).isFalse();
    }

    @Test
    void aCallWhoseTokenExpiresWhileItWaitsForOthersIsToldSo() throws Exception {
        AtomicReference<Instant> now = new AtomicReference<>(NOW);
        UsedTokens used = new UsedTokens(100, now::get);
        Interceptor requiring =
                Tokens.requiring(Map.of("alice", ALICE)::get, nobody -> false, new Tokens.InMemory(used), now::get);
        MockTicker ticker = Ticker.newMockTicker();
        HandledContext call = new HandledContext(0, Duration.ofMinutes(2).toNanos(), Metadata.EMPTY, null, ticker);
        String token = unsent(Tokens.signing("alice", ALICE, now::get));
        Metadata sent = Metadata.EMPTY.with("rpcx-token", token);
        Interceptor.Invocation invocation = new CallInvocation("secret", "whoAmI", new Object[0], sent, call);
        ticker.advance(42, TimeUnit.SECONDS);
        now.set(NOW.plusSeconds(42));
        assertThatThrownBy(() -> requiring.intercept(invocation, known -> "handled"))
                .isInstanceOfSatisfying(RPCXException.class, e -> {
                    assertThat(e.code()).isEqualTo(RPCXException.Code.OVERLOADED);
                    assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                    assertThat(e).hasMessageContaining("42 s");
                });
        assertThat(used.remembered()).isZero();
        // a token that was already as old when it arrived is not valid
        HandledContext late =
                new HandledContext(ticker.nanoTime(), Duration.ofMinutes(2).toNanos(), Metadata.EMPTY, null, ticker);
        assertThatThrownBy(() -> requiring.intercept(
                        new CallInvocation("secret", "whoAmI", new Object[0], sent, late), known -> "handled"))
                .hasMessage("no valid token");
    }

    @Test
    void aServerLooksAtATokenOnce() {
        Server.Builder builder = Server.builder(RegistryServer.registry(new Secret()))
                .interceptor(Tokens.requiring(Map.of("alice", ALICE)::get))
                .interceptor(Tokens.requiring(Map.of("bob", BOB)::get));
        assertThatThrownBy(builder::build)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("2 interceptors (expected: one");
    }

    /** A name of 255 characters counts as much as more than four tokens. */
    @Test
    void namesOfSignersHaveTheirRoom() {
        AtomicReference<Instant> now = new AtomicReference<>(NOW);
        UsedTokens used = new UsedTokens(100, now::get);
        int taken = 0;
        try {
            for (; taken < 100; taken++) {
                used.first(String.valueOf((char) ('A' + taken)).repeat(255), "t" + taken, NOW.plusSeconds(10));
            }
        } catch (RPCXException full) {
            assertThat(full.code()).isEqualTo(RPCXException.Code.OVERLOADED);
        }
        assertThat(taken).isBetween(10, 25);
        now.set(NOW.plusSeconds(11));
        assertThat(used.first("alice", "1", NOW.plusSeconds(20))).isTrue();
        assertThat(used.remembered()).isEqualTo(1);
        for (int i = 2; i <= 50; i++) {
            assertThat(used.first("alice", "a" + i, NOW.plusSeconds(20))).isTrue();
        }
    }

    /** Throws an exception that the method does not declare. */
    @SuppressWarnings("unchecked")
    private static <T, E extends Throwable> T sneaky(Throwable thrown) throws E {
        throw (E) thrown;
    }

    private static void assertUnchecked(RPCXException.Code code, String message, Interceptor requiring) {
        Server server = Server.builder(RegistryServer.registry(new Secret()))
                .interceptor(requiring)
                .build()
                .start();
        try {
            assertThatThrownBy(() -> ask(server.port(), Tokens.signing("alice", ALICE)))
                    .isInstanceOfSatisfying(RPCXException.class, e -> {
                        assertThat(e.code()).isEqualTo(code);
                        assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                        assertThat(e).hasMessage(message);
                    });
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    @Test
    void howeverTheCheckOfATokenFailsTheCallHasNotRunAndIsToldSo() {
        for (Throwable thrown : java.util.List.of(
                new RPCXException(RPCXException.Code.INVALID, "by the store"),
                new RPCXException(RPCXException.Code.UNAVAILABLE, "by the store", RPCXException.Executed.MAYBE, null),
                new RPCXException(RPCXException.Code.OVERLOADED, "by the store"),
                RPCXException.refused(RPCXException.Code.NOT_FOUND, "by the store"),
                new NoClassDefFoundError("by the store"),
                new java.io.IOException("by the store"))) {
            assertUnchecked(
                    RPCXException.Code.UNAVAILABLE,
                    "tokens cannot be checked now",
                    Tokens.requiring(
                            Map.of("alice", ALICE)::get, nobody -> false, (signer, token, until) -> sneaky(thrown)));
            assertUnchecked(
                    RPCXException.Code.UNAUTHENTICATED, "no valid token", Tokens.requiring(name -> sneaky(thrown)));
        }
        assertUnchecked(
                RPCXException.Code.OVERLOADED,
                "no room",
                Tokens.requiring(Map.of("alice", ALICE)::get, nobody -> false, (signer, token, until) -> {
                    throw RPCXException.refused(RPCXException.Code.OVERLOADED, "no room");
                }));
    }
}
