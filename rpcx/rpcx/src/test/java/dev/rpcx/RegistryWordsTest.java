package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

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
}
