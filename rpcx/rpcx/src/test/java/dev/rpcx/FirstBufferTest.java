package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests that the work which a process does only once, for its first buffer, is not done on an event loop. There it
 * would delay the deadlines of calls.
 */
@Timeout(60)
class FirstBufferTest {
    private static final String BUILT = "the client is built";

    /** A process that builds a client, and makes no call. */
    static final class Main {
        private Main() {}

        public static void main(String[] args) {
            try (Client client = Client.builder().eventLoops(1).build()) {
                System.out.println(client.core().isClosed() ? "closed" : BUILT);
            }
        }
    }

    @Test
    void theEventsThatNettyTellsOfBuffersAreReadyWhenAClientIsBuilt() throws IOException {
        List<String> loaded = new ArrayList<>();
        try (JvmProcess process = JvmProcess.start(List.of("-Xlog:class+load:stdout"), Main.class)) {
            for (String line = process.greeting(); !line.equals(BUILT); line = process.greeting()) {
                loaded.add(line);
            }
        }
        assertThat(loaded).anyMatch(line -> line.contains(" jdk.jfr.internal.MetadataRepository "));
    }
}
