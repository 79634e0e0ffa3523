package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.client.ClientAddress;
import dev.rpcx.internal.wire.Settings;
import io.netty.buffer.Unpooled;
import io.netty.channel.EventLoop;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests a callback that holds up a client's event loop while other calls of the client are in flight. */
@Timeout(60)
class HeldUpLoopTest {
    private static final int CALLS = 20;
    private static final int TIME_MILLIS = 500;
    private static final Predicate<String> IS_LATE = message -> message.endsWith("no reply in time");
    private static final Predicate<String> IS_HELD_UP =
            message -> message.contains("while the event loop was held up for");

    @RPCXServer("held")
    static final class Held {
        @Method
        String after(int millis) throws InterruptedException {
            Thread.sleep(millis);
            return "after " + millis;
        }
    }

    @RPCXClient(remoteServerName = "held")
    interface Calls {
        CompletableFuture<String> after(int millis);

        @Method(value = "after", timeoutMillis = TIME_MILLIS)
        CompletableFuture<String> afterSoon(int millis);
    }

    private final Client client =
            Client.builder().eventLoops(1).connections(1, 1).build();
    private @Nullable Endpoints called;

    @AfterEach
    void stop() {
        client.close();
    }

    private static void holdUp(int millis) {
        long end = System.nanoTime() + Duration.ofMillis(millis).toNanos();
        while (System.nanoTime() - end < 0) {
            Thread.onSpinWait();
        }
    }

    /** The reply that holds the loop up is read first, and the timers run before the sockets are looked at again. */
    private static void assertRepliesInTimeAreRead(Server.Builder serving, Client calling) throws Exception {
        Server server = serving.build().start();
        try {
            Calls calls = calling.create(Calls.class, "127.0.0.1", server.port());
            calls.after(0).join();
            // where the machine stands still, replies are late indeed
            Again.upToFiveTimes(60, () -> {
                CompletableFuture<Void> holding = calls.after(100).thenRun(() -> holdUp(2 * TIME_MILLIS));
                List<CompletableFuture<String>> made = new ArrayList<>();
                for (int i = 0; i < CALLS; i++) {
                    made.add(calls.afterSoon(200));
                }
                holding.join();
                assertThat(made)
                        .allSatisfy(call -> assertThat(call)
                                .succeedsWithin(Duration.ofSeconds(20))
                                .isEqualTo("after 200"));
            });
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    @Test
    void repliesThatHaveComeInTimeAreReadBeforeAnyCallEndsAsLate() throws Exception {
        assertRepliesInTimeAreRead(Server.builder(RegistryServer.registry(new Held())), client);
    }

    @Test
    void repliesOfTheClassicWireThatHaveComeInTimeAreReadToo() throws Exception {
        try (Client classic = Client.builder().classic().eventLoops(1).build()) {
            assertRepliesInTimeAreRead(
                    Server.builder(RegistryServer.registry(new Held())).classic(true), classic);
        }
    }

    private static FakeServer silent() throws IOException {
        return new FakeServer(new Settings(1 << 20, 100, 10_000_000), Unpooled.EMPTY_BUFFER, (request, peer) -> {});
    }

    private Stream<ClientAddress> instances() {
        return Stream.of(Objects.requireNonNull(client.core().clusters.get(Objects.requireNonNull(called)))
                .chooser()
                .all);
    }

    /** Makes calls to two instances that answer nothing. */
    private List<CompletableFuture<String>> unanswered(FakeServer one, FakeServer other) {
        Endpoints both = Endpoints.of(one.endpoint(), other.endpoint());
        called = both;
        Calls calls = client.create(Calls.class, both);
        await().until(() -> instances().allMatch(address -> address.ready() != null));
        List<CompletableFuture<String>> made = new ArrayList<>();
        for (int i = 0; i < CALLS; i++) {
            made.add(calls.afterSoon(0));
        }
        return made;
    }

    @Test
    void callsWhoseTimeGoesByMeanwhileSayNothingOfTheirInstance() throws Exception {
        // where this thread stands still before it holds the loop up, some calls are late by then
        Again.upToFiveTimes(
                TIME_MILLIS / 5, () -> assertThat(saidWhereNobodyAnswers(true)).allMatch(IS_HELD_UP));
    }

    @Test
    void callsThatGetNoReplyWhileTheLoopRunsCountAsFailed() throws Exception {
        // where the machine stands still for a tenth of the time, the loop is held up
        Again.upToFiveTimes(
                TIME_MILLIS / 20,
                () -> assertThat(saidWhereNobodyAnswers(false)).allMatch(IS_LATE));
    }

    private List<String> saidWhereNobodyAnswers(boolean isHeldUp) throws Exception {
        List<String> said = new ArrayList<>();
        try (FakeServer one = silent();
                FakeServer other = silent()) {
            List<CompletableFuture<String>> made = unanswered(one, other);
            if (isHeldUp) {
                EventLoop loop = instances()
                        .map(ClientAddress::ready)
                        .findFirst()
                        .orElseThrow()
                        .loop();
                loop.execute(() -> holdUp(2 * TIME_MILLIS));
            }
            for (CompletableFuture<String> call : made) {
                assertThatThrownBy(call::join)
                        .isInstanceOf(CompletionException.class)
                        .cause()
                        .isInstanceOfSatisfying(RPCXException.class, why -> {
                            assertThat(why.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
                            said.add(String.valueOf(why.getMessage()));
                        });
            }
            if (said.stream().allMatch(isHeldUp ? IS_HELD_UP : IS_LATE)) {
                assertThat(instances().anyMatch(address -> address.health().isEjected()))
                        .isEqualTo(!isHeldUp);
            }
        }
        return said;
    }
}
