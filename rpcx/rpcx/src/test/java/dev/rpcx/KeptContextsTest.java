package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.client.ClientConnection;
import io.netty.channel.Channel;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests that a context that is kept after its call has ended holds none of the tasks that were to run if the call was
 * cancelled.
 */
@Timeout(60)
class KeptContextsTest {
    @RPCXServer("contexts")
    static final class Service {
        volatile @Nullable CallContext kept;
        final List<WeakReference<Object>> payloads = new ArrayList<>();

        @Method
        String direct(String text) {
            keep();
            return text;
        }

        @Method
        CompletableFuture<String> later(String text) {
            keep();
            return CompletableFuture.supplyAsync(
                    () -> text, CompletableFuture.delayedExecutor(20, java.util.concurrent.TimeUnit.MILLISECONDS));
        }

        private void keep() {
            CallContext own = CallContext.current().orElseThrow();
            kept = own;
            tell(own);
        }

        void tell(CallContext context) {
            Object payload = new Object();
            payloads.add(new WeakReference<>(payload));
            context.onCancel(payload::hashCode);
        }
    }

    @RPCXClient(remoteServerName = "contexts")
    interface Calls {
        String direct(String text);

        String later(String text);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void afterAGoodEndAContextHoldsNothingThatWasToBeTold(boolean isClassic) {
        Service service = new Service();
        Server server = Server.builder(RegistryServer.registry(service))
                .classic(isClassic)
                .build()
                .start();
        Client.Builder builder = Client.builder();
        try (Client client = (isClassic ? builder.classic() : builder).build()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            for (String text : List.of("direct", "later")) {
                assertThat(text.equals("direct") ? calls.direct(text) : calls.later(text))
                        .isEqualTo(text);
                expectNoPayload(service, client);
                // the call is over: it will never be cancelled
                CallContext own = Objects.requireNonNull(service.kept);
                service.tell(own);
                expectNoPayload(service, client);
                assertThat(own.isCancelled()).isFalse();
            }
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    private static void expectNoPayload(Service service, Client client) {
        await().until(() -> {
            pings(client);
            System.gc();
            return service.payloads.stream().allMatch(each -> each.refersTo(null));
        });
    }

    /** A server that has nothing to do forgets the last call when its client says something. */
    private static void pings(Client client) {
        for (Channel channel : client.core().channels.keySet()) {
            ClientConnection connection = channel.pipeline().get(ClientConnection.class);
            if (connection != null) {
                connection.loop().execute(connection::ping);
            }
        }
    }
}
