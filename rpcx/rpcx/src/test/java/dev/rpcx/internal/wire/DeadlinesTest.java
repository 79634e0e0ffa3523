package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.CallContext;
import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.OneWay;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RawPeer;
import dev.rpcx.RawServer;
import dev.rpcx.internal.call.StreamsTest;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests the time that a request carries. It is the time that is left of the call, whoever sends the request and however
 * long it has waited.
 */
@Timeout(60)
class DeadlinesTest {
    @RPCXClient(remoteServerName = "raw")
    interface Calls {
        String blocking(String text);

        CompletableFuture<String> later(String text);

        @Method(idempotent = true, hedgeMillis = 20)
        CompletableFuture<String> hedged(String text);

        @Method(idempotent = true)
        CompletableFuture<String> twice(String text);

        @OneWay
        void notice(String text);

        Flow.Publisher<String> items();

        @Method(timeoutMillis = 100)
        CompletableFuture<String> soon(String text);

        @Method(timeoutMillis = 100)
        Flow.Publisher<String> itemsSoon();
    }

    private static final Duration TIME = Duration.ofSeconds(5);

    private RawServer server;
    private Client client;
    private Calls calls;

    @BeforeEach
    void start() throws Exception {
        server = new RawServer();
        client = Client.builder().eventLoops(1).connections(1).build();
        calls = client.create(Calls.class, "127.0.0.1", server.port());
    }

    @AfterEach
    void stop() throws Exception {
        client.close();
        server.close();
    }

    private static RawServer.Request next(RawServer.Peer peer, int type) throws Exception {
        return RawServer.Request.of(peer.read(type));
    }

    private static void assertIsLeftOf(Duration time, RawServer.Request request) {
        assertThat(request.micros())
                .as("the time of %s", request.method())
                .isPositive()
                .isLessThanOrEqualTo(time.toNanos() / 1000);
    }

    @Test
    void anAsynchronousCallThatWaitsForItsConnectionKeepsItsTime() throws Exception {
        CallContext.within(TIME, () -> calls.later("x"));
        try (RawServer.Peer peer = server.accept(8)) {
            assertIsLeftOf(TIME, next(peer, Wire.REQUEST));
        }
    }

    @Test
    void aOneWayCallThatWaitsForItsConnectionKeepsItsTime() throws Exception {
        CallContext.within(TIME, () -> {
            calls.notice("x");
            return "";
        });
        try (RawServer.Peer peer = server.accept(8)) {
            assertIsLeftOf(TIME, next(peer, Wire.NOTICE));
        }
    }

    @Test
    void theSecondCallOfAHedgedOneKeepsItsTime() throws Exception {
        CallContext.within(TIME, () -> calls.hedged("x"));
        try (RawServer.Peer peer = server.accept(8)) {
            assertIsLeftOf(TIME, next(peer, Wire.REQUEST));
            assertIsLeftOf(TIME, next(peer, Wire.REQUEST));
        }
    }

    @Test
    void aCallThatIsMadeAgainKeepsItsTime() throws Exception {
        CallContext.within(TIME, () -> calls.twice("x"));
        try (RawServer.Peer peer = server.accept(8)) {
            assertIsLeftOf(TIME, next(peer, Wire.REQUEST));
        }
        try (RawServer.Peer peer = server.accept(8)) {
            assertIsLeftOf(TIME, next(peer, Wire.REQUEST));
        }
    }

    @Test
    void aStreamKeepsTheTimeOfTheCallThatItWasMadeIn() throws Exception {
        Flow.Publisher<String> stream = CallContext.within(TIME, calls::items);
        stream.subscribe(new StreamsTest.Collected<>(1));
        try (RawServer.Peer peer = server.accept(8)) {
            assertIsLeftOf(TIME, next(peer, Wire.REQUEST));
        }
    }

    @Test
    void theTimeSpentConnectingIsTakenOff() throws Exception {
        CompletableFuture<Thread> begun = new CompletableFuture<>();
        CompletableFuture<String> blocking = CompletableFuture.supplyAsync(() -> {
            begun.complete(Thread.currentThread());
            return calls.blocking("x");
        });
        CompletableFuture<String> later = calls.later("y");
        Thread caller = begun.get(20, TimeUnit.SECONDS);
        // the caller has made its call, and the time of the call is running
        await().until(() ->
                caller.getState() == Thread.State.WAITING || caller.getState() == Thread.State.TIMED_WAITING);
        // the server greets the client after a while
        assertThatThrownBy(() -> later.get(500, TimeUnit.MILLISECONDS))
                .isInstanceOf(java.util.concurrent.TimeoutException.class);
        try (RawServer.Peer peer = server.accept(8)) {
            for (int i = 0; i < 2; i++) {
                RawPeer.Frame frame = peer.read(Wire.REQUEST);
                assertIsLeftOf(Duration.ofMillis(9_800), RawServer.Request.of(frame));
                peer.reply(frame.id(), "z");
            }
            assertThat(later.get(10, TimeUnit.SECONDS)).isEqualTo("z");
            assertThat(blocking.get(10, TimeUnit.SECONDS)).isEqualTo("z");
        }
    }

    @Test
    void aCallEndsInTimeThoughItsServerDoesNotGreet() {
        assertThatThrownBy(() -> calls.soon("x").get(2, TimeUnit.SECONDS))
                .hasCauseInstanceOf(RPCXException.class)
                .hasMessageContaining("DEADLINE_EXCEEDED (NOT_EXECUTED)");
        StreamsTest.Collected<String> collected = new StreamsTest.Collected<>(1);
        calls.itemsSoon().subscribe(collected);
        assertThatThrownBy(() -> collected.end.get(2, TimeUnit.SECONDS)).hasMessageContaining("DEADLINE_EXCEEDED");
    }

    @Test
    void aFullTimeIsNotTold() throws Exception {
        CompletableFuture<String> first = calls.later("x");
        try (RawServer.Peer peer = server.accept(8)) {
            peer.reply(peer.read(Wire.REQUEST).id(), "x");
            first.get(10, TimeUnit.SECONDS);
            boolean untold = false;
            for (int i = 0; i < 1000 && !untold; i++) {
                CompletableFuture<String> call = calls.later("x");
                RawPeer.Frame frame = peer.read(Wire.REQUEST);
                untold = RawServer.Request.of(frame).micros() == -1;
                peer.reply(frame.id(), "x");
                call.get(10, TimeUnit.SECONDS);
            }
            assertThat(untold).isTrue();
        }
    }
}
