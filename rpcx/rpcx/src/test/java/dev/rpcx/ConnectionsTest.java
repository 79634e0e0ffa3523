package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests how many connections a client has to an address. It makes more while the existing ones are crowded. */
@Timeout(60)
class ConnectionsTest {
    /** Answers when the test says so, and holds no thread until then. */
    @RPCXServer("waiting")
    static final class Waiting {
        final CompletableFuture<String> answer = new CompletableFuture<>();

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletableFuture<String> ask() {
            return answer;
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String now() {
            return "now";
        }
    }

    @RPCXClient(remoteServerName = "waiting")
    interface WaitingClient {
        @Method(timeoutMillis = 50_000)
        CompletableFuture<String> ask();

        String now();
    }

    private static List<CompletableFuture<String>> ask(WaitingClient calls, int count) {
        List<CompletableFuture<String>> asked = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            asked.add(calls.ask());
            if (i % 20 == 0) {
                // what has been sent is counted when this is answered
                assertThat(calls.now()).isEqualTo("now");
            }
        }
        return asked;
    }

    @Test
    void aCrowdedConnectionIsJoinedByMoreUntilThereAreAsManyAsMayBe() throws Exception {
        Waiting service = new Waiting();
        Server server = Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .maxCalls(400)
                .build()
                .start();
        try (Client client = Client.builder().connections(1, 3).build()) {
            WaitingClient calls = client.create(WaitingClient.class, "127.0.0.1", server.port());
            List<CompletableFuture<String>> asked = new ArrayList<>(ask(calls, 290));
            assertThat(server.core().connections()).isEqualTo(1);
            // a connection is crowded from 300 calls on
            asked.addAll(ask(calls, 25));
            await().until(() -> server.core().connections() == 2);
            asked.addAll(ask(calls, 325));
            await().until(() -> server.core().connections() == 3);
            asked.addAll(ask(calls, 400));
            assertThat(server.core().connections()).isEqualTo(3);
            service.answer.complete("told");
            for (CompletableFuture<String> one : asked) {
                assertThat(one.get(10, TimeUnit.SECONDS)).isEqualTo("told");
            }
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    @Test
    void asManyAsAreAskedForAndNoMore() {
        Waiting service = new Waiting();
        Server server = Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .maxCalls(40)
                .build()
                .start();
        try (Client client = Client.builder().connections(1).build()) {
            WaitingClient calls = client.create(WaitingClient.class, "127.0.0.1", server.port());
            ask(calls, 39);
            assertThat(calls.now()).isEqualTo("now");
            List<CompletableFuture<String>> more = List.of(calls.ask());
            assertThatThrownBy(calls::now)
                    .isInstanceOfSatisfying(
                            RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.OVERLOADED));
            assertThat(server.core().connections()).isEqualTo(1);
            service.answer.complete("told");
            assertThat(more.get(0).join()).isEqualTo("told");
        } finally {
            server.stop(Duration.ofMillis(200));
        }
        assertThatThrownBy(() -> Client.builder().connections(2, 1)).hasMessageContaining("2 to 1");
        assertThatThrownBy(() -> Client.builder().connections(65)).hasMessageContaining("65");
    }
}
