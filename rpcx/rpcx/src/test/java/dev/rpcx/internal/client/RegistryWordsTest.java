package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.Inside;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests how a registry's text about its failure appears in the errors of calls, which callers and logs show. */
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

    private static List<String> texts(Throwable thrown) {
        StringWriter trace = new StringWriter();
        thrown.printStackTrace(new PrintWriter(trace));
        return List.of(trace.toString());
    }

    /** Whoever logs an error has its causes written too. */
    @Test
    void aRegistrysTextIsVisibleInTheCausesOfACallsErrorToo() {
        String host = "evil\u202e" + "x".repeat(100);
        Endpoints naming = listener -> {
            listener.found(List.of(new Endpoint(host, 9)));
            return () -> {};
        };
        Endpoints failing = listener -> {
            listener.failed(new IllegalStateException("asked in vain", new IllegalArgumentException("\u001b[2J")));
            return () -> {};
        };
        Endpoints plain = listener -> {
            listener.failed(new IllegalStateException("asked in vain"));
            return () -> {};
        };
        try (Client client =
                Client.builder().connectTimeout(Duration.ofMillis(500)).build()) {
            Anything named = client.create(Anything.class, naming);
            // the first call fails at once, and the second one in the pause after it
            for (Anything each : List.of(named, named, client.create(Anything.class, failing))) {
                assertThat(texts(catchThrowable(each::go)))
                        .singleElement()
                        .asString()
                        .contains("RPCXException")
                        .doesNotContain("\u202e", "\u001b");
            }
            assertThat(catchThrowable(client.create(Anything.class, plain)::go))
                    .hasCauseInstanceOf(IllegalStateException.class);
        }
    }

    @Test
    void aMemberIsNamedVisibly() {
        try (Client client = Client.standard()) {
            ClientAddress member = new ClientAddress(Inside.core(client), new Endpoint("evil\u202e.example", 9), 1, 1);
            assertThat(member).hasToString("evil\\u202e.example:9");
        }
    }
}
