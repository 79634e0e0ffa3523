package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.client.Chooser;
import dev.rpcx.internal.client.ClientAddress;
import dev.rpcx.internal.client.ClientCluster;
import dev.rpcx.internal.client.RefusalBudget;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Tests what happens to calls that are given to one instance of several if this instance takes no calls, or says that
 * it takes none.
 */
@Timeout(120)
class BadInstancesTest {
    private static final int CALLS = 200;

    @RPCXServer("good")
    static final class Good {
        final AtomicInteger run = new AtomicInteger();

        @Method
        String echo(String text) {
            run.incrementAndGet();
            return text;
        }

        @Method
        Flow.Publisher<String> items(int n) {
            run.incrementAndGet();
            return new StreamsTest.Made<>(n, i -> "item " + i);
        }
    }

    @RPCXClient(remoteServerName = "good")
    interface Calls {
        String echo(String text);

        @Method("echo")
        CompletableFuture<String> echoLater(String text);

        Flow.Publisher<String> items(int n);

        String nowhere(String text);
    }

    private final Good good = new Good();
    private final Server server = new Server(0, RegistryServer.registry(good)).start();
    private final Client client =
            Client.builder().eventLoops(1).connections(1, 1).build();

    @AfterEach
    void stop() {
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    private static FakeServer fake(int maxMessageBytes, int maxCalls, ByteBuf dictionary, FakeServer.Answer answer)
            throws IOException {
        return new FakeServer(new Settings(maxMessageBytes, maxCalls, 10_000_000), dictionary, answer);
    }

    /** Returns a proxy when the client is connected to both instances. */
    private Calls calls(FakeServer bad) throws InterruptedException {
        Calls calls =
                client.create(Calls.class, Endpoints.of(new Endpoint("127.0.0.1", server.port()), bad.endpoint()));
        assertThat(bad.known.await(20, TimeUnit.SECONDS)).isTrue();
        Chooser chooser = cluster().chooser();
        await().until(() -> List.of(chooser.all).stream().allMatch(address -> address.ready() != null));
        return calls;
    }

    private ClientCluster cluster() {
        return client.core().clusters.values().iterator().next();
    }

    private void allReachTheGoodOne(Calls calls) throws Exception {
        for (int i = 0; i < CALLS; i++) {
            assertThat(calls.echo("x" + i)).isEqualTo("x" + i);
            assertThat(calls.echoLater("y" + i).get(20, TimeUnit.SECONDS)).isEqualTo("y" + i);
            StreamsTest.Collected<String> collected = new StreamsTest.Collected<>(10);
            calls.items(3).subscribe(collected);
            assertThat(collected.end.get(20, TimeUnit.SECONDS)).hasSize(3);
        }
        assertThat(good.run).hasValue(3 * CALLS);
    }

    private void becomesEjected(Calls calls, FakeServer bad) {
        ClientAddress address = List.of(cluster().chooser().all).stream()
                .filter(each -> each.endpoint.equals(bad.endpoint()))
                .findFirst()
                .orElseThrow();
        await().until(() -> {
            calls.echo("x");
            return address.health().isEjected();
        });
    }

    @Test
    void callsThatAreTooLargeForOneInstanceGoToAnotherAndTheInstanceIsEjected() throws Exception {
        try (FakeServer bad = fake(1, 100, Unpooled.EMPTY_BUFFER, (request, peer) -> {})) {
            Calls calls = calls(bad);
            allReachTheGoodOne(calls);
            assertThat(bad.requests).hasValue(0);
            becomesEjected(calls, bad);
        }
    }

    @Test
    void callsWhoseMethodHasAnotherShapeAtOneInstanceGoToAnotherAndTheInstanceIsEjected() throws Exception {
        ByteBuf dictionary = Unpooled.buffer();
        ByteBuf scratch = Unpooled.buffer();
        MethodDictionary.write(dictionary, scratch, "good", "echo", 1, 0, -1);
        MethodDictionary.write(dictionary, scratch, "good", "items", 2, 0, -1);
        try (FakeServer bad = fake(1 << 20, 100, dictionary, (request, peer) -> {})) {
            Calls calls = calls(bad);
            allReachTheGoodOne(calls);
            assertThat(bad.requests).hasValue(0);
            becomesEjected(calls, bad);
        }
    }

    @Test
    void anInstanceThatTakesOneCallHasOneAndTheOthersGoToAnother() throws Exception {
        List<RawServer.Peer> asked = new ArrayList<>();
        List<Integer> ids = new ArrayList<>();
        try (FakeServer bad = fake(1 << 20, 1, Unpooled.EMPTY_BUFFER, (request, peer) -> {
            synchronized (asked) {
                asked.add(peer);
                ids.add(request.id());
            }
        })) {
            Calls calls = calls(bad);
            List<CompletableFuture<String>> made = new ArrayList<>();
            for (int i = 0; i < CALLS; i++) {
                made.add(calls.echoLater("x"));
            }
            await().until(() -> made.stream().filter(CompletableFuture::isDone).count() >= CALLS - 1);
            await().until(() -> bad.requests.get() == CALLS - good.run.get());
            assertThat(bad.requests.get()).isLessThanOrEqualTo(1);
            synchronized (asked) {
                for (int i = 0; i < asked.size(); i++) {
                    asked.get(i).reply(ids.get(i), "x");
                }
            }
            for (CompletableFuture<String> call : made) {
                assertThat(call.get(20, TimeUnit.SECONDS)).isEqualTo("x");
            }
        }
    }

    /**
     * For example, the instance cannot reach a store that it needs for tokens. It executes nothing, so it has no load,
     * and therefore it attracts calls.
     */
    @Test
    void anInstanceThatSaysThatItCannotServeIsEjected() throws Exception {
        try (FakeServer bad = fake(
                1 << 20,
                100,
                Unpooled.EMPTY_BUFFER,
                (request, peer) -> peer.error(request.id(), RPCXException.Code.UNAVAILABLE))) {
            Calls calls = calls(bad);
            List<CompletableFuture<String>> made = new ArrayList<>();
            ClientAddress address = List.of(cluster().chooser().all).stream()
                    .filter(each -> each.endpoint.equals(bad.endpoint()))
                    .findFirst()
                    .orElseThrow();
            await().until(() -> {
                for (int i = 0; i < 20; i++) {
                    made.add(calls.echoLater("x"));
                }
                return address.health().isEjected();
            });
            for (CompletableFuture<String> call : made) {
                call.handle((reply, failure) -> reply).get(20, TimeUnit.SECONDS);
            }
            // calls may have failed before the instance was ejected, but none fails now
            int asked = bad.requests.get();
            for (int i = 0; i < CALLS / 2; i++) {
                assertThat(calls.echo("x")).isEqualTo("x");
            }
            assertThat(bad.requests.get() - asked).isLessThanOrEqualTo(CALLS / 4);
        }
    }

    /**
     * The instance belongs to another service, or has an older version, or cannot reach the secrets of its tokens.
     */
    @ParameterizedTest
    @EnumSource(
            value = RPCXException.Code.class,
            names = {"NOT_FOUND", "UNAUTHENTICATED"})
    void callsThatOneInstanceRefusesGoToAnotherAndTheInstanceIsEjected(RPCXException.Code code) throws Exception {
        try (FakeServer bad =
                fake(1 << 20, 100, Unpooled.EMPTY_BUFFER, (request, peer) -> peer.error(request.id(), code))) {
            Calls calls = calls(bad);
            becomesEjected(calls, bad);
            int asked = bad.requests.get();
            for (int i = 0; i < CALLS / 2; i++) {
                assertThat(calls.echo("x" + i)).isEqualTo("x" + i);
                assertThat(calls.echoLater("y" + i).get(20, TimeUnit.SECONDS)).isEqualTo("y" + i);
            }
            assertThat(bad.requests.get() - asked).isLessThanOrEqualTo(CALLS / 4);
        }
    }

    /** The former instance has the calls in flight, when the registry names one other instance in its place. */
    @ParameterizedTest
    @EnumSource(
            value = RPCXException.Code.class,
            names = {"OVERLOADED", "NOT_FOUND", "UNAUTHENTICATED"})
    void callsThatAFormerInstanceRefusesGoToTheOneThatIsNamedInItsPlace(RPCXException.Code code) throws Exception {
        CompletableFuture<Void> named = new CompletableFuture<>();
        AtomicReference<Endpoints.Listener> listener = new AtomicReference<>();
        try (FakeServer former = fake(1 << 20, 100, Unpooled.EMPTY_BUFFER, (request, peer) -> {
            named.join();
            peer.error(request.id(), code);
        })) {
            Calls calls = client.create(Calls.class, (Endpoints) told -> {
                listener.set(told);
                told.found(List.of(former.endpoint()));
                return () -> {};
            });
            CompletableFuture<String> later = calls.echoLater("x");
            CompletableFuture<String> blocking =
                    CompletableFuture.supplyAsync(() -> calls.echo("y"), task -> new Thread(task).start());
            await().until(() -> former.requests.get() == 1);
            ClientAddress asked = cluster().chooser().all[0];
            await().until(() -> Objects.requireNonNull(asked.ready()).load() == 2);
            listener.get().found(List.of(new Endpoint("127.0.0.1", server.port())));
            await().until(() -> cluster().ready(0) != null);
            assertThat(cluster().chooser().all).hasSize(1).doesNotContain(asked);
            assertThat(cluster().readyBeside(List.of(asked))).isNotNull();
            named.complete(null);
            assertThat(later.get(20, TimeUnit.SECONDS)).isEqualTo("x");
            assertThat(blocking.get(20, TimeUnit.SECONDS)).isEqualTo("y");
            assertThat(good.run).hasValue(2);
        }
    }

    @Test
    void whatAllInstancesRefuseIsHeldAgainstNone() throws Exception {
        try (FakeServer bad = fake(
                1 << 20,
                100,
                Unpooled.EMPTY_BUFFER,
                (request, peer) -> peer.error(request.id(), RPCXException.Code.NOT_FOUND))) {
            Calls calls = calls(bad);
            for (int i = 0; i < 50; i++) {
                assertThatThrownBy(() -> calls.nowhere("x"))
                        .isInstanceOfSatisfying(
                                RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.NOT_FOUND));
            }
            for (ClientAddress address : cluster().chooser().all) {
                assertThat(address.health().isEjected()).isFalse();
            }
        }
    }

    /** More than a tenth of the calls have no valid token, or are of a method that no instance has. */
    @Test
    void whatAllInstancesRefuseTakesNoRetryFromOtherCalls() throws Exception {
        try (FakeServer bad = fake(
                1 << 20,
                100,
                Unpooled.EMPTY_BUFFER,
                (request, peer) -> peer.error(request.id(), RPCXException.Code.NOT_FOUND))) {
            Calls calls = calls(bad);
            for (int i = 0; i < CALLS; i++) {
                assertThatThrownBy(() -> calls.nowhere("x")).isInstanceOf(RPCXException.class);
            }
            int retries = 0;
            while (cluster().budget().spend()) {
                retries++;
            }
            // the budget begins with ten retries, and gains one for ten calls
            assertThat(retries).isEqualTo(10 + CALLS / 10);
        }
    }

    /** For example, one instance has an older version, and somebody calls a method that no version has. */
    @Test
    void whatAllInstancesRefuseTakesNoTryFromCallsOfOtherMethods() throws Exception {
        try (FakeServer bad = fake(
                1 << 20,
                100,
                Unpooled.EMPTY_BUFFER,
                (request, peer) -> peer.error(request.id(), RPCXException.Code.NOT_FOUND))) {
            Calls calls = calls(bad);
            for (int i = 0; i < 2 * RefusalBudget.MAX_RETRIES; i++) {
                assertThatThrownBy(() -> calls.nowhere("x")).isInstanceOf(RPCXException.class);
            }
            for (int i = 0; i < CALLS; i++) {
                assertThatThrownBy(() -> calls.nowhere("x")).isInstanceOf(RPCXException.class);
                assertThat(calls.echo("y")).isEqualTo("y");
            }
        }
    }

    @Test
    void aCallThatNoInstanceTakesFailsAndNoInstanceIsEjectedForIt() throws Exception {
        String large = "x".repeat(Wire.MAX_MESSAGE_BYTES + 1);
        try (FakeServer bad = fake(1 << 10, 100, Unpooled.EMPTY_BUFFER, (request, peer) -> {})) {
            Calls calls = calls(bad);
            for (int i = 0; i < 20; i++) {
                assertThatThrownBy(() -> calls.echo(large)).isInstanceOfSatisfying(RPCXException.class, e -> {
                    assertThat(e.code()).isEqualTo(RPCXException.Code.TOO_LARGE);
                    assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                });
            }
            for (ClientAddress address : cluster().chooser().all) {
                assertThat(address.health().isEjected()).isFalse();
            }
        }
    }
}
