package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Again;
import dev.rpcx.Client;
import dev.rpcx.Link;
import dev.rpcx.LongForm;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RawPeer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.internal.client.Backoff;
import io.netty.buffer.ByteBuf;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests peers that are gone without having closed the connection, servers that never greet, and pauses between tries
 * to connect.
 */
@Timeout(60)
class KeepAliveTest {
    @RPCXServer("waiting")
    static final class Waits {
        final CountDownLatch blocks = new CountDownLatch(1);
        final CountDownLatch release = new CountDownLatch(1);
        final AtomicInteger interrupted = new AtomicInteger();

        @Method
        String hello(String name) {
            return name;
        }

        @Method
        void block() {
            blocks.countDown();
            try {
                release.await();
            } catch (InterruptedException e) {
                interrupted.incrementAndGet();
            }
        }
    }

    @RPCXClient(remoteServerName = "waiting")
    interface Waiting {
        String hello(String name);

        @Method("hello")
        CompletableFuture<String> helloLater(String name);

        @Method(timeoutMillis = 30_000)
        CompletableFuture<Void> block();
    }

    private static final Duration KEEP_ALIVE = Duration.ofMillis(900);

    /**
     * A fifth of the time in which a PING has to be answered, which is a third of the keepalive time. A loop that
     * stands still for that whole time loses its connection rightly.
     */
    private static final long STILL_MILLIS = KEEP_ALIVE.toMillis() / 3 / 5;

    private static final Duration SILENT = Duration.ofMillis(2500);

    @Test
    void aServerThatIsGoneWithoutAWordIsFoundWithinTheKeepAliveTime() throws Exception {
        Again.upToFiveTimes(STILL_MILLIS, KeepAliveTest::assertGoneServerIsFound);
    }

    private static void assertGoneServerIsFound() throws Exception {
        Waits waits = new Waits();
        try (Server server = Server.builder(RegistryServer.registry(waits))
                        .keepAlive(KEEP_ALIVE)
                        .build()
                        .start();
                Link link = new Link(server.port());
                Client client = Client.builder().keepAlive(KEEP_ALIVE).build()) {
            Waiting waiting = client.create(Waiting.class, "127.0.0.1", link.port());
            CompletableFuture<Void> blocked = waiting.block();
            CompletableFuture<String> behind = waiting.helloLater("behind it");
            await().until(() -> blocked.isDone() || behind.isDone() && waits.blocks.getCount() == 0);
            assertThat(blocked).isNotDone();
            assertThat(behind).isCompletedWithValue("behind it");
            link.pull();
            long pulled = System.nanoTime();
            RPCXException lost = ended(blocked);
            long found = System.nanoTime() - pulled;
            assertThat(lost.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
            assertThat(lost.executed()).isEqualTo(RPCXException.Executed.MAYBE);
            assertThat(lost).hasMessageContaining("has not answered a PING");
            // this is the keepalive time and the delay of a busy machine; nothing else would end the call before 30 s,
            // and KeepAliveLooksTest checks the exact time
            assertThat(found).isLessThan(KEEP_ALIVE.toNanos() + TimeUnit.SECONDS.toNanos(10));
            await().untilAsserted(() -> assertThat(waits.interrupted).hasValue(1));
            LongForm.figure(
                    5,
                    "half-open connection found after %d ms, keepalive time %d ms",
                    TimeUnit.NANOSECONDS.toMillis(found),
                    KEEP_ALIVE.toMillis());
        }
    }

    @Test
    void aSilentConnectionThatIsAliveIsKept() throws Exception {
        // a loop that stands still answers no PING in time, and its connection ends rightly
        Again.upToFiveTimes(STILL_MILLIS, KeepAliveTest::assertIsKeptThoughSilent);
    }

    private static void assertIsKeptThoughSilent() {
        try (Server server = Server.builder(RegistryServer.registry(new Waits()))
                        .keepAlive(KEEP_ALIVE)
                        .build()
                        .start();
                Client client = Client.builder().keepAlive(KEEP_ALIVE).build()) {
            Waiting waiting = client.create(Waiting.class, "127.0.0.1", server.port());
            CompletableFuture<Void> blocked = waiting.block();
            long begin = System.nanoTime();
            await().until(() -> blocked.isDone() || System.nanoTime() - begin > SILENT.toNanos());
            assertThat(blocked).isNotDone();
            blocked.cancel(true);
        }
    }

    @Test
    void aClientThatReadsNothingIsDisconnected() throws Exception {
        try (Server server = Server.builder(RegistryServer.registry(new Waits()))
                        .keepAlive(KEEP_ALIVE)
                        .build()
                        .start();
                RawPeer raw = new RawPeer(server.port())) {
            ByteBuf many = RawPeer.preface();
            raw.send(many);
            String text = "x".repeat(10_000);
            CompletableFuture<Void> sending = CompletableFuture.runAsync(() -> {
                try {
                    for (int slot = 0; ; slot = (slot + 1) % 4000) {
                        raw.send(RawPeer.request(1 << 16 | slot, "waiting", "hello", text));
                    }
                } catch (java.io.IOException closed) {
                    // the test waits for this exception
                }
            });
            sending.get(20, TimeUnit.SECONDS);
        }
    }

    @Test
    void aServerThatSaysNothingIsNotConnectedTo() throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
                Client client =
                        Client.builder().connectTimeout(Duration.ofMillis(200)).build()) {
            Waiting waiting = client.create(Waiting.class, "127.0.0.1", silent.getLocalPort());
            RPCXException refused = ended(waiting.block());
            assertThat(refused.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
            assertThat(refused.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            assertThat(refused).hasMessageContaining("has not answered in time");
        }
    }

    @Test
    void triesPauseLongerAndLongerAndTheServerIsFoundWhenItIsBack() throws Exception {
        int port;
        try (ServerSocket free = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        try (Client client = Client.standard()) {
            Waiting waiting = client.create(Waiting.class, "127.0.0.1", port);
            // a call in a long pause between attempts to connect fails with this text, and does not try to connect
            await().pollInterval(Duration.ofMillis(5))
                    .until(() -> ended(waiting.block()).getMessage().contains("tries to connect failed"));
            try (Server server = new Server(port, RegistryServer.registry(new Waits())).start()) {
                await().atMost(Duration.ofSeconds(3))
                        .pollInterval(Duration.ofMillis(5))
                        .until(() -> {
                            try {
                                return waiting.hello("again").equals("again");
                            } catch (RPCXException e) {
                                assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                                return false;
                            }
                        });
                assertThat(server.port()).isEqualTo(port);
            }
        }
    }

    @Test
    void pausesDoubleUpToASecondAndDiffer() {
        for (int failures = 1; failures < 40; failures++) {
            long full = Math.min(1_000_000_000L, 20_000_000L << Math.min(failures - 1, 10));
            for (int i = 0; i < 100; i++) {
                assertThat(Backoff.nanos(failures, ThreadLocalRandom.current())).isBetween(full / 2, full);
            }
        }
        assertThat(java.util.stream.LongStream.generate(() -> Backoff.nanos(5, ThreadLocalRandom.current()))
                        .limit(50)
                        .distinct()
                        .count())
                .isGreaterThan(20);
    }

    @Test
    void settingsOutsideTheirRangeAreRefused() {
        org.assertj.core.api.Assertions.assertThatThrownBy(
                        () -> Client.builder().keepAlive(Duration.ofMillis(99)))
                .hasMessageContaining("100 ms to 1 h");
    }

    private static RPCXException ended(CompletableFuture<?> future) {
        try {
            future.get(20, TimeUnit.SECONDS);
        } catch (java.util.concurrent.ExecutionException | CompletionException e) {
            return (RPCXException) e.getCause();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
        throw new AssertionError("expected: an RPCXException");
    }
}
