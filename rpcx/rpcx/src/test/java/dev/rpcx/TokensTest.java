package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.security.Principal;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.ZoneOffset;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tokens that are good, forged, old, used twice, or meant for another call. */
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
            // what a client says of itself counts for nothing
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

    @Test
    void aTokenIsGoodForOneUseAndOneMethod() {
        withServer(port -> {
            AtomicReference<String> stolen = new AtomicReference<>();
            Interceptor thief = (call, next) -> {
                stolen.set(call.metadata().get("rpcx-token"));
                return next.proceed(call);
            };
            assertThat(ask(port, Tokens.signing("alice", ALICE, CLOCK), thief)).isEqualTo("alice");
            Interceptor replay = (call, next) -> next.proceed(call.with("rpcx-token", stolen.get()));
            assertRefused(port, replay);
            Interceptor unsent = (call, next) -> {
                stolen.set(call.metadata().get("rpcx-token"));
                return "kept back";
            };
            assertThat(ask(port, Tokens.signing("alice", ALICE, CLOCK), unsent)).isEqualTo("kept back");
            try (Client client = Client.builder().interceptor(replay).build()) {
                SecretClient secret = client.create(SecretClient.class, "127.0.0.1", port);
                assertThatThrownBy(secret::other).hasMessage("no valid token");
                assertThat(secret.whoAmI()).isEqualTo("alice");
            }
        });
        LongForm.figure(
                9, "refused, all alike: a token that is expired, used before, for another method, of a wrong secret");
    }

    @Test
    void aShortSecretIsRefused() {
        assertThatThrownBy(() -> Tokens.signing("alice", new byte[15])).hasMessageContaining("16");
    }
}
