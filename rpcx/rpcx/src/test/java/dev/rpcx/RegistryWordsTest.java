package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What a registry says of its failure is read by callers, and in logs. */
class RegistryWordsTest {
    @RPCXClient(remoteServerName = "anything")
    interface Anything {
        String go();
    }

    @Test
    void aRegistrysTextIsOneShortLineOfACallsError() {
        Endpoints failing = listener -> {
            listener.failed(new IllegalStateException("first\nsecond\u001b[2J" + "x".repeat(100_000)));
            return () -> {};
        };
        try (Client client = Client.standard()) {
            assertThat(catchThrowable(client.create(Anything.class, failing)::go))
                    .isInstanceOf(RPCXException.class)
                    .satisfies(e -> assertThat(e.getMessage())
                            .contains("first\\u000asecond\\u001b")
                            .doesNotContain("\n", "\u001b")
                            .hasSizeLessThan(1_000));
        }
    }

    @Test
    void aHostThatARegistryNamesIsVisibleInACallsError() {
        // nobody listens there: a label of DNS has 63 characters at most
        String host = "evil\u202e" + "x".repeat(100);
        Endpoints naming = listener -> {
            listener.found(List.of(new Endpoint(host, 9)));
            return () -> {};
        };
        try (Client client =
                Client.builder().connectTimeout(Duration.ofMillis(500)).build()) {
            assertThat(catchThrowable(client.create(Anything.class, naming)::go))
                    .isInstanceOf(RPCXException.class)
                    .satisfies(e -> assertThat(e.getMessage())
                            .contains("evil\\u202exxx")
                            .doesNotContain("\u202e"));
        }
    }

    @Test
    void aMemberIsNamedVisibly() {
        try (Client client = Client.standard()) {
            ClientAddress member = new ClientAddress(client, new Endpoint("evil\u202e.example", 9), 1, 1);
            assertThat(member).hasToString("evil\\u202e.example:9");
        }
    }
}
