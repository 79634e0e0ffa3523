package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.client.ClientConnection;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests what a client holds after its calls have ended: only a little, only for a while, and nothing once it is closed.
 */
@Timeout(60)
class ClientMemoryTest {
    private static final int CALLS = 300;
    private static final int BYTES = 100_000;

    /** Number of bytes that a free slot may keep without counting them. */
    private static final int MAX_FREE_BYTES = 512;

    @RPCXServer("large")
    static final class Large {
        final CountDownLatch all = new CountDownLatch(CALLS);

        /** Answers when all have come, so that each call has a slot of its own. */
        @Method
        String together(int bytes) throws InterruptedException {
            all.countDown();
            all.await();
            return "x".repeat(bytes);
        }

        /** Does the same as {@link #together}, for the bytes of arguments. */
        @Method
        int taken(String text) throws InterruptedException {
            all.countDown();
            all.await();
            return text.length();
        }

        @Method
        String echo(String text) {
            return text;
        }
    }

    @RPCXClient(remoteServerName = "large")
    interface Calls {
        CompletableFuture<String> together(int bytes);

        CompletableFuture<Integer> taken(String text);

        String echo(String text);

        @Method(timeoutMillis = 60_000)
        CompletableFuture<byte[]> never();

        @Method(value = "never", timeoutMillis = 300)
        byte[] neverHere();
    }

    private Server server;
    private Client client;
    private Calls calls;

    @BeforeEach
    void start() {
        server = Server.builder(RegistryServer.registry(new Large()))
                .maxRunning(2 * CALLS)
                .build()
                .start();
        client = Client.builder().connections(1).build();
        calls = client.create(Calls.class, "127.0.0.1", server.port());
    }

    @AfterEach
    void stop() {
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    private ClientConnection connection() {
        return client.core().channels.keySet().iterator().next().pipeline().get(ClientConnection.class);
    }

    private static long bytes(ClientConnection connection) {
        long bytes = 0;
        for (int slot = 0; slot < connection.slots.createdCount(); slot++) {
            bytes += connection.slots.at(slot).body.capacity();
        }
        return bytes;
    }

    private void burst() throws Exception {
        List<CompletableFuture<String>> all = new ArrayList<>();
        for (int i = 0; i < CALLS; i++) {
            all.add(calls.together(BYTES));
        }
        for (CompletableFuture<String> one : all) {
            assertThat(one.get(30, TimeUnit.SECONDS)).hasSize(BYTES);
        }
        await().until(() -> connection().load() == 0);
    }

    @Test
    void aBurstOfLargeRepliesLeavesNoMoreThanTheBoundOfAConnection() throws Exception {
        burst();
        assertThat(connection().slots.createdCount()).isEqualTo(CALLS);
        long small = CALLS * (long) MAX_FREE_BYTES;
        long maxKept = client.core().ledger().maxOfConnection(Resource.KEPT_BYTES);
        assertThat(bytes(connection())).isBetween(1L, maxKept + small);
        assertThat(client.core().ledger().held(Resource.KEPT_BYTES)).isBetween(1L, maxKept);
        assertThat(client.core().ledger().held(Resource.REPLY_BYTES)).isZero();
    }

    @Test
    void whatIsKeptIsGivenBackWhenNothingNeedsItAnyMore() throws Exception {
        burst();
        await().until(() -> client.core().ledger().held(Resource.KEPT_BYTES) == 0);
        assertThat(bytes(connection())).isLessThanOrEqualTo(CALLS * (long) MAX_FREE_BYTES);
        assertThat(calls.echo("still")).isEqualTo("still");
    }

    /**
     * Each of the calls that are made at once has a slot, and each slot keeps a buffer. If nobody counted the buffers,
     * they would be kept as long as the connection.
     */
    @Test
    void whatABurstOfSmallCallsHasGrownIsCountedAndGivenBackToo() throws Exception {
        List<CompletableFuture<Integer>> all = new ArrayList<>();
        for (int i = 0; i < CALLS; i++) {
            all.add(calls.taken("x".repeat(1_200)));
        }
        for (CompletableFuture<Integer> one : all) {
            assertThat(one.get(30, TimeUnit.SECONDS)).isEqualTo(1_200);
        }
        assertThat(connection().slots.createdCount()).isEqualTo(CALLS);
        await().until(() -> bytes(connection()) <= CALLS * (long) MAX_FREE_BYTES);
        assertThat(calls.echo("still")).isEqualTo("still");
    }

    @Test
    void aClosedClientKeepsNothing() throws Exception {
        burst();
        ClientConnection connection = connection();
        client.close();
        assertThat(client.core().ledger().held(Resource.KEPT_BYTES)).isZero();
        assertThat(bytes(connection)).isLessThanOrEqualTo(CALLS * (long) MAX_FREE_BYTES);
    }

    /** A server begins a reply, and never ends it. */
    @Test
    void theBeginOfAReplyIsHeldNoLongerThanItsCall() throws Exception {
        Settings settings = new Settings(1 << 22, 100, 10_000_000);
        try (FakeServer half = new FakeServer(settings, Unpooled.EMPTY_BUFFER, (request, peer) -> {
            peer.send(Wire.REPLY | Wire.MORE, request.id(), Unpooled.buffer().writeZero(16_000));
            for (int i = 0; i < 60; i++) {
                peer.send(Wire.PART | Wire.MORE, request.id(), Unpooled.buffer().writeZero(16_000));
            }
        })) {
            Calls halves =
                    client.create(Calls.class, "127.0.0.1", half.endpoint().port());
            Again.inTwiceTheTime(300, millis -> {
                CompletableFuture<byte[]> later = CallContext.within(Duration.ofMillis(millis), halves::never);
                await().until(() -> client.core().ledger().held(Resource.REPLY_BYTES) > 900_000 || later.isDone());
                // if the call is not done yet, the begin of its reply has been seen
                boolean isSeen = !later.isDone();
                assertThatThrownBy(halves::neverHere).isInstanceOf(RPCXException.class);
                await().atMost(Duration.ofSeconds(50)).until(later::isCompletedExceptionally);
                return isSeen;
            });
            await().until(() -> client.core().ledger().held(Resource.REPLY_BYTES) == 0);
        }
    }

    @Test
    void slotsThatAreTrimmedAreNotMissing() throws Exception {
        assertThat(calls.echo("first")).isEqualTo("first");
        ClientConnection connection = connection();
        connection.slots.limit(2);
        CountDownLatch over = new CountDownLatch(1);
        Thread trims = new Thread(() -> {
            while (over.getCount() > 0) {
                connection.slots.trim();
            }
        });
        trims.start();
        for (int i = 0; i < 5_000; i++) {
            connection.slots.acquire(0).dropUnsent();
        }
        over.countDown();
        trims.join();
        assertThat(calls.echo("last")).isEqualTo("last");
    }
}
