package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.client.ClientAddress;
import dev.rpcx.internal.client.Health;
import dev.rpcx.internal.client.PendingConnection;
import dev.rpcx.internal.io.Loops;
import dev.rpcx.internal.io.Platform;
import dev.rpcx.internal.wire.Settings;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.Ticker;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests that each call ends and is then forgotten, whatever happens to its client, its event loop or its connection.
 */
@Timeout(120)
class EachCallEndsTest {
    @RPCXServer("each")
    static final class Service {
        @Method
        String echo(String text) {
            return text;
        }
    }

    @RPCXClient(remoteServerName = "each")
    interface Calls {
        String echo(String text);

        @Method("echo")
        CompletableFuture<String> echoLater(String text);

        @Method(value = "echo", idempotent = true, hedgeMillis = 60_000, timeoutMillis = 60_001)
        String echoHedged(String text);

        @Method(value = "echo", idempotent = true, hedgeMillis = 1, timeoutMillis = 500)
        String echoHedgedSoon(String text);

        @Method(value = "echo", timeoutMillis = 500)
        String echoSoon(String text);

        @Method(value = "length", idempotent = true, hedgeMillis = 60_000, timeoutMillis = 60_001)
        CompletableFuture<Integer> lengthHedged(byte[] bytes);

        Flow.Publisher<String> stream(String text);
    }

    @RPCXClient(remoteServerName = "each")
    interface ClassicCalls {
        String echo(String text);

        @Method(value = "echo", timeoutMillis = 500)
        String echoSoon(String text);

        @Method("echo")
        CompletableFuture<String> echoLater(String text);
    }

    private static final Executor OWN_THREADS = task -> {
        Thread thread = new Thread(task, "a caller");
        thread.setDaemon(true);
        thread.start();
    };

    private static RPCXException failure(CompletableFuture<?> call) throws Exception {
        Throwable thrown = call.handle((value, failed) -> failed).get(30, TimeUnit.SECONDS);
        return (RPCXException) (thrown instanceof CompletionException e ? e.getCause() : thrown);
    }

    private static void expectUnavailable(CompletableFuture<?> call) throws Exception {
        RPCXException failure = failure(call);
        assertThat(failure.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
        assertThat(failure.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        assertThat(failure).hasMessageContaining("the client is closed");
    }

    @Test
    void callsThatWaitForAPauseToPassEndWithTheirClient() throws Exception {
        HandPlatform hand = new HandPlatform();
        Client client =
                Client.builder().platform(hand).eventLoops(1).connections(1, 1).build();
        Calls calls = client.create(Calls.class, "peer", 1);
        for (int i = 0; i < 3; i++) {
            CompletableFuture<String> failed = calls.echoLater("x");
            hand.pass(hand.opened.get(0), 100, TimeUnit.MILLISECONDS);
            hand.opened.get(i).close();
            hand.settle(hand.opened.get(i));
            assertThat(failed).isDone();
        }
        CompletableFuture<String> waits = calls.echoLater("x");
        StreamsTest.Collected<String> stream = new StreamsTest.Collected<>(1);
        calls.stream("x").subscribe(stream);
        assertThat(hand.opened).as("the next attempt waits").hasSize(3);
        assertThat(waits).isNotDone();
        client.core().end();
        // no time passes between the end of the client and these checks
        assertThat(waits).isDone();
        assertThat(stream.end).isDone();
        expectUnavailable(waits);
        expectUnavailable(stream.end);
        hand.end(client, hand.opened.get(0), List.of(waits, stream.end));
    }

    @Test
    void callsThatWaitForANameEndWithTheirClient() throws Exception {
        try (NameServer names = NameServer.silent()) {
            Platform asking = asking(names);
            Client client = Client.builder().platform(asking).eventLoops(1).build();
            Client classic =
                    Client.builder().platform(asking).eventLoops(1).classic().build();
            Calls calls = client.create(Calls.class, "server.test", 1);
            ClassicCalls classicCalls = classic.create(ClassicCalls.class, "server.test", 1);
            List<CompletableFuture<?>> waiting = new ArrayList<>();
            waiting.add(calls.echoLater("x"));
            StreamsTest.Collected<String> stream = new StreamsTest.Collected<>(1);
            calls.stream("x").subscribe(stream);
            waiting.add(stream.end);
            waiting.add(classicCalls.echoLater("x"));
            waiting.add(CompletableFuture.supplyAsync(() -> calls.echo("x"), OWN_THREADS));
            waiting.add(CompletableFuture.supplyAsync(() -> calls.echoHedged("x"), OWN_THREADS));
            waiting.add(CompletableFuture.supplyAsync(() -> classicCalls.echo("x"), OWN_THREADS));
            await().until(() -> names.asked.get() >= 2
                    && client.core().address("server.test", 1).waitingCalls() == 3
                    && classic.core().address("server.test", 1).waitingCalls() == 2);
            client.close();
            classic.close();
            for (CompletableFuture<?> call : waiting) {
                expectUnavailable(call);
            }
        }
    }

    private static Platform asking(NameServer names) {
        return new Platform() {
            @Override
            public Loops loops(int count, String name, boolean inProcess) {
                return Loops.withNameServers(names.address(), count, name);
            }

            @Override
            public Ticker ticker() {
                return MACHINE.ticker();
            }

            @Override
            public RandomGenerator random() {
                return MACHINE.random();
            }
        };
    }

    /**
     * An event loop that is held up ends no call. A caller that blocks notices by itself that the time of its call is
     * over, even if other threads make the call for it.
     */
    @Test
    void blockingCallsEndThoughTheirEventLoopIsHeldUp() throws Exception {
        Server server = Server.builder(RegistryServer.registry(new Service()))
                .port(0)
                .classic(true)
                .build()
                .start();
        CountDownLatch free = new CountDownLatch(1);
        CountDownLatch blocked = new CountDownLatch(2);
        Client client = Client.builder().eventLoops(1).build();
        Client classic = Client.builder().eventLoops(1).classic().build();
        try {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            ClassicCalls classicCalls = classic.create(ClassicCalls.class, "127.0.0.1", server.port());
            assertThat(calls.echo("x")).isEqualTo("x");
            assertThat(classicCalls.echo("x")).isEqualTo("x");
            for (Client each : List.of(client, classic)) {
                each.core().channels.keySet().iterator().next().eventLoop().execute(() -> hold(blocked, free));
            }
            blocked.await();
            // where a thread stands still, the time of its call may be over before anything can be sent
            Again.upToFiveTimes(100, () -> {
                List<CompletableFuture<String>> callers = new ArrayList<>();
                callers.add(CompletableFuture.supplyAsync(() -> calls.echoHedgedSoon("x"), OWN_THREADS));
                callers.add(CompletableFuture.supplyAsync(() -> classicCalls.echoSoon("x"), OWN_THREADS));
                for (int i = 0; i < 8; i++) {
                    callers.add(CompletableFuture.supplyAsync(() -> calls.echoSoon("x"), OWN_THREADS));
                }
                for (CompletableFuture<String> caller : callers) {
                    RPCXException late = failure(caller);
                    assertThat(late.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
                    assertThat(late.executed()).isEqualTo(RPCXException.Executed.MAYBE);
                }
            });
            // this process has held its loop up itself: eight such ends in a row say nothing of the instance
            ClientAddress address = client.core().address("127.0.0.1", server.port());
            assertThat(address.health().ended(Health.Outcome.FAILED)).isFalse();
        } finally {
            free.countDown();
            client.close();
            classic.close();
            server.stop(Duration.ofMillis(200));
        }
    }

    /**
     * Holds up an event loop, as a callback that never ends does. It spins, since {@link LoopChecker} reports a loop
     * that waits.
     */
    private static void hold(CountDownLatch blocked, CountDownLatch free) {
        blocked.countDown();
        while (free.getCount() > 0) {
            Thread.onSpinWait();
        }
    }

    /** An error that the log of the platform cannot write either, since {@code toString} throws. */
    private static final class Unspeakable extends Error {
        private static final long serialVersionUID = 1L;

        @Override
        public String toString() {
            throw new StackOverflowError();
        }
    }

    private static final class Throwing extends StreamsTest.Collected<String> {
        Throwing() {
            super(1);
        }

        @Override
        public void onError(Throwable thrown) {
            super.onError(thrown);
            throw new Unspeakable();
        }
    }

    /** Closes the server before the end of the block that would close it. */
    private static void end(FakeServer server) throws IOException {
        server.close();
    }

    @Test
    void callsEndWithTheirConnectionWhateverTheCallbacksOfOthersThrow() throws Exception {
        CountDownLatch came = new CountDownLatch(4);
        try (FakeServer server =
                        new FakeServer(Settings.INITIAL, Unpooled.EMPTY_BUFFER, (request, peer) -> came.countDown());
                Client client = Client.builder().eventLoops(1).build()) {
            Calls calls = client.create(
                    Calls.class, server.endpoint().host(), server.endpoint().port());
            List<CompletableFuture<?>> ends = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                Throwing throwing = new Throwing();
                calls.stream("x").subscribe(throwing);
                ends.add(throwing.end);
            }
            ends.add(calls.echoLater("x"));
            came.await();
            end(server);
            for (CompletableFuture<?> end : ends) {
                assertThat(failure(end).code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
            }
            await().until(() -> client.core().channels.isEmpty());
            assertThat(client.core().ledger().audit()).isEmpty();
        }
    }

    @Test
    void whoWaitsForAConnectionHearsOfItsEndWhateverOthersThrow() {
        PendingConnection<String> pending = new PendingConnection<>();
        List<String> told = new ArrayList<>();
        pending.add((connected, failure) -> {
            told.add("first");
            throw new Unspeakable();
        });
        pending.add((connected, failure) -> told.add("second"));
        pending.completeExceptionally(new IllegalStateException("no"));
        assertThat(told).containsExactly("first", "second");
    }

    @RPCXServer("each")
    static final class Lengths {
        @Method
        int length(byte[] bytes) {
            return bytes.length;
        }
    }

    @Test
    void nothingIsKeptOfAHedgedCallThatIsOver() throws Exception {
        Server server = new Server(0, RegistryServer.registry(new Lengths())).start();
        try (Client client = Client.builder().eventLoops(1).build()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            List<WeakReference<byte[]>> arguments = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                byte[] bytes = new byte[i + 1];
                arguments.add(new WeakReference<>(bytes));
                assertThat(calls.lengthHedged(bytes).get(10, TimeUnit.SECONDS)).isEqualTo(i + 1);
            }
            Heap.assumeCollected();
            await().untilAsserted(() -> {
                System.gc();
                assertThat(arguments).allMatch(each -> each.get() == null);
            });
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }
}
