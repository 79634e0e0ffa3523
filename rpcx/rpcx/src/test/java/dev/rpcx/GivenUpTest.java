package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.client.ClientConnection;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests calls that end at the client before the server has ended them, and what happens to their slots. */
@Timeout(60)
class GivenUpTest {
    private static final int MAX_CALLS = 16;

    @RPCXClient(remoteServerName = "raw")
    interface Calls {
        @Method(timeoutMillis = 60_000)
        CompletableFuture<String> filling(String text);

        @Method(timeoutMillis = 50)
        CompletableFuture<String> shortly(String text);

        @Method(timeoutMillis = 50)
        String shortlyBlocking(String text);

        @Method(timeoutMillis = 20_000)
        CompletableFuture<String> call(String text);

        CompletableFuture<String> standard(String text);

        @Method(timeoutMillis = 20_000)
        String blocking(String text);

        @Method(timeoutMillis = 20_000)
        CompletableFuture<Long> sum(Flow.Publisher<Integer> numbers);

        @Method(timeoutMillis = 20_000)
        Flow.Publisher<String> items();
    }

    private static final String LARGE = "x".repeat(3_000_000);

    private RawServer server;
    private Client client;
    private Calls calls;
    private RawServer.Peer peer;

    @BeforeEach
    void start() throws Exception {
        server = new RawServer();
        client = Client.builder().eventLoops(1).connections(1).build();
        calls = client.create(Calls.class, "127.0.0.1", server.port());
    }

    private void connect(int maxCalls) throws Exception {
        CompletableFuture<String> first = calls.call("first");
        peer = server.accept(maxCalls);
        peer.reply(peer.read(Wire.REQUEST).id(), "first");
        assertThat(first.get(10, TimeUnit.SECONDS)).isEqualTo("first");
    }

    @AfterEach
    void stop() throws Exception {
        client.close();
        peer.close();
        server.close();
    }

    private ClientConnection connection() {
        return client.core().channels.keySet().iterator().next().pipeline().get(ClientConnection.class);
    }

    private static RPCXException failure(CompletableFuture<?> call) {
        try {
            call.join();
        } catch (CompletionException e) {
            return (RPCXException) e.getCause();
        }
        throw new AssertionError("the call brought a result (expected: an RPCXException)");
    }

    /** Makes calls until the socket takes no more. What is queued from here on stays at the client. */
    private int fill() {
        int sent = 0;
        while (connection().channel.isWritable()) {
            calls.filling(LARGE);
            sent++;
            int now = sent;
            await().until(() -> connection().load() == now);
            long before = connection().channel.bytesBeforeUnwritable();
            await().pollDelay(java.time.Duration.ZERO)
                    .until(() -> !connection().channel.isWritable()
                            || connection().channel.bytesBeforeUnwritable() == before);
        }
        return sent;
    }

    @Test
    void aLargeRequestWhoseTimeEndsBeforeItIsSentIsNotExecutedAndFreesItsSlot() throws Exception {
        connect(MAX_CALLS);
        int filling = fill();
        for (int round = 0; round < 3; round++) {
            List<CompletableFuture<String>> late = new ArrayList<>();
            for (int i = filling; i < MAX_CALLS; i++) {
                late.add(calls.shortly("y".repeat(20_000)));
            }
            for (CompletableFuture<String> one : late) {
                RPCXException error = failure(one);
                assertThat(error.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
                assertThat(error.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            }
            await().until(() -> connection().load() == filling);
        }
        assertThatThrownBy(() -> calls.shortlyBlocking("y".repeat(20_000)))
                .isInstanceOfSatisfying(
                        RPCXException.class,
                        e -> assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED));
    }

    @Test
    void requestsOfOneFrameDoNotFillTheQueueOfASocketWhosePeerDoesNotRead() throws Exception {
        int many = 300;
        String text = "x".repeat(16_000);
        connect(many);
        List<CompletableFuture<String>> made = new ArrayList<>();
        for (int i = 0; i < many; i++) {
            made.add(calls.call(text));
        }
        await().until(() -> connection().isQueueEmpty());
        // the loop may just be writing what it took from the callers; what the socket does not take stays
        await().untilAsserted(() ->
                assertThat(client.core().ledger().held(Resource.QUEUE_BYTES)).isLessThan(20 * text.length()));
        assertThat(client.core().ledger().held(Resource.REQUEST_BYTES)).isGreaterThan(200 * text.length());
        for (int i = 0; i < many; i++) {
            peer.reply(peer.read(Wire.REQUEST).id(), "got");
        }
        for (CompletableFuture<String> one : made) {
            assertThat(one.get(10, TimeUnit.SECONDS)).isEqualTo("got");
        }
        assertThat(client.core().ledger().held(Resource.REQUEST_BYTES)).isZero();
    }

    @Test
    void largeRequestsThatHaveNotBeenSentAreChargedAndNoMoreAreTakenThanFit() throws Exception {
        connect(MAX_CALLS);
        Ledger ledger = client.core().ledger();
        CompletableFuture<String> first = calls.call("x".repeat(100_000));
        RawPeer.Frame frame = peer.read(Wire.REQUEST);
        while ((frame.head() & Wire.MORE) != 0) {
            frame = peer.read(Wire.PART);
        }
        peer.reply(frame.id(), "first");
        first.get(10, TimeUnit.SECONDS);
        await().untilAsserted(() -> assertThat(ledger.held(Resource.REQUEST_BYTES))
                .as("of what has left")
                .isZero());
        fill();
        // the socket may have taken all that filled it, and takes no more
        calls.filling(LARGE);
        calls.filling(LARGE);
        assertThat(ledger.held(Resource.REQUEST_BYTES)).isGreaterThanOrEqualTo(LARGE.length());

        int taken = connection().slots.taken();
        List<Charge> more = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            Charge one = java.util.Objects.requireNonNull(ledger.open(null)).charge(Resource.REQUEST_BYTES);
            for (long part = ledger.max(Resource.REQUEST_BYTES); part > 0; ) {
                if (!one.add(part)) {
                    part /= 2;
                }
            }
            more.add(one);
        }
        for (int round = 0; round < 2 * MAX_CALLS; round++) {
            RPCXException refused = failure(calls.call("y".repeat(20_000)));
            assertThat(refused.code()).isEqualTo(RPCXException.Code.OVERLOADED);
            assertThat(refused.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        }
        assertThat(connection().slots.taken()).as("slots").isEqualTo(taken);
        more.forEach(Charge::release);
        peer.close();
        await().untilAsserted(
                        () -> assertThat(ledger.held(Resource.REQUEST_BYTES)).isZero());
    }

    @Test
    void aLargeRequestThatIsCancelledBeforeItIsSentFreesItsSlot() throws Exception {
        connect(MAX_CALLS);
        int filling = fill();
        for (int round = 0; round < 3; round++) {
            List<CompletableFuture<String>> given = new ArrayList<>();
            for (int i = filling; i < MAX_CALLS; i++) {
                given.add(calls.call("y".repeat(20_000)));
            }
            await().until(() -> connection().load() == MAX_CALLS);
            given.forEach(call -> call.cancel(true));
            await().until(() -> connection().load() == filling);
        }
    }

    @Test
    void aLargeRequestWhoseCallerIsInterruptedBeforeItIsSentFreesItsSlot() throws Exception {
        connect(MAX_CALLS);
        int filling = fill();
        for (int round = 0; round < MAX_CALLS; round++) {
            CompletableFuture<RPCXException> ended = new CompletableFuture<>();
            Thread caller = new Thread(() -> {
                try {
                    calls.blocking("y".repeat(20_000));
                } catch (RPCXException e) {
                    ended.complete(e);
                }
            });
            caller.start();
            await().until(() -> connection().load() == filling + 1);
            caller.interrupt();
            assertThat(ended.get(10, TimeUnit.SECONDS).code()).isEqualTo(RPCXException.Code.CANCELLED);
            await().until(() -> connection().load() == filling);
        }
    }

    @Test
    void nothingIsToldToTheServerOfACallThatItNeverSaw() throws Exception {
        connect(MAX_CALLS);
        int filling = fill();
        failure(calls.shortly("y".repeat(20_000)));
        calls.call("z".repeat(20_000)).cancel(true);
        await().until(() -> connection().load() == filling);
        CompletableFuture<String> last = calls.call("last");
        List<Integer> types = new ArrayList<>();
        while (true) {
            RawPeer.Frame frame = peer.read();
            types.add(frame.type());
            if (frame.type() == Wire.REQUEST
                    && RawServer.Request.of(frame).method().equals("call")) {
                peer.reply(frame.id(), "got");
                break;
            }
        }
        assertThat(last.get(10, TimeUnit.SECONDS)).isEqualTo("got");
        assertThat(types).doesNotContain(Wire.CANCEL);
    }

    @Test
    void theTimeThatALargeRequestWaitsForTheSocketIsTakenOff() throws Exception {
        connect(MAX_CALLS);
        fill();
        calls.call("y".repeat(20_000));
        calls.standard("y".repeat(20_000));
        failure(calls.shortly("z".repeat(20_000)));
        for (int i = 0; i < 2; i++) {
            RawServer.Request request;
            do {
                request = RawServer.Request.of(peer.read(Wire.REQUEST));
            } while (request.method().equals("filling"));
            assertThat(request.micros()).isBetween(1L, request.method().equals("call") ? 19_950_000L : 9_950_000L);
            assertThat(request.body()).startsWith(0x0A, 0xA0, 0x9C, 0x01, 'y', 'y');
        }
    }

    @Test
    void aLargeRequestThatHasNotBeenSentWhenItsServerDrainsGoesToAnotherConnection() throws Exception {
        connect(MAX_CALLS);
        fill();
        CompletableFuture<String> moved = calls.call("y".repeat(20_000));
        await().until(() -> connection().load() > 1);
        peer.send(Wire.GOAWAY, 0);
        try (RawServer.Peer next = server.accept(MAX_CALLS)) {
            RawPeer.Frame request = next.read(Wire.REQUEST);
            next.reply(request.id(), "moved");
            assertThat(moved.get(10, TimeUnit.SECONDS)).isEqualTo("moved");
        }
    }

    @Test
    void aCallThatHasBeenSentIsCancelledOnceAndItsSlotWaitsForTheFinalFrame() throws Exception {
        connect(1);
        CompletableFuture<String> given = calls.call("given up");
        int id = peer.read(Wire.REQUEST).id();
        given.cancel(true);
        given.cancel(true);
        assertThat(peer.read().type()).isEqualTo(Wire.CANCEL);
        assertThatThrownBy(() -> calls.call("too early").join())
                .hasMessageContaining("all 1 slots of one connection are taken");
        peer.error(id, RPCXException.Code.CANCELLED);
        await().until(() -> connection().load() == 0);
        CompletableFuture<String> next = calls.call("next");
        RawPeer.Frame request = peer.read();
        assertThat(request.type()).as("no second CANCEL").isEqualTo(Wire.REQUEST);
        peer.reply(request.id(), "next");
        assertThat(next.get(10, TimeUnit.SECONDS)).isEqualTo("next");
    }

    @Test
    void theLastPartOfAnItemIsNoFinalFrameAfterACancel() throws Exception {
        connect(1);
        StreamsTest.Collected<String> collected = new StreamsTest.Collected<>(5);
        calls.items().subscribe(collected);
        int id = peer.read(Wire.REQUEST).id();
        peer.send(Wire.ITEM | Wire.MORE, id, Unpooled.wrappedBuffer(new byte[] {0x0A, 0x04, 'a', 'b'}));
        collected.begin.join().cancel();
        peer.read(Wire.CANCEL);
        peer.send(Wire.PART, id, Unpooled.wrappedBuffer(new byte[] {'c', 'd'}));
        peer.send(Wire.PING, 0);
        peer.read(Wire.PONG);
        assertThatThrownBy(() -> calls.call("too early").join())
                .hasMessageContaining("all 1 slots of one connection are taken");
        peer.error(id, RPCXException.Code.CANCELLED);
        await().until(() -> connection().load() == 0);
    }

    @Test
    void aReplyThatIsTooLargeAtItsLastPartFreesItsSlot() throws Exception {
        connect(1);
        CompletableFuture<String> large = calls.call("much");
        int id = peer.read(Wire.REQUEST).id();
        byte[] part = new byte[Wire.MAX_PAYLOAD_BYTES];
        int parts = Wire.MAX_MESSAGE_BYTES / part.length;
        for (int i = 0; i < parts; i++) {
            peer.send(i == 0 ? Wire.REPLY | Wire.MORE : Wire.PART | Wire.MORE, id, Unpooled.wrappedBuffer(part));
        }
        peer.send(Wire.PART, id, Unpooled.wrappedBuffer(part));
        assertThat(failure(large).code()).isEqualTo(RPCXException.Code.TOO_LARGE);
        CompletableFuture<String> next = calls.call("next");
        peer.reply(peer.read(Wire.REQUEST).id(), "next");
        assertThat(next.get(10, TimeUnit.SECONDS)).isEqualTo("next");
    }

    @Test
    void aPublisherThatFailsAtOnceEndsItsCall() throws Exception {
        connect(1);
        CompletableFuture<Long> sum = calls.sum(subscriber -> {
            throw new IllegalStateException("nothing to send");
        });
        int id = peer.read(Wire.REQUEST).id();
        peer.read(Wire.CANCEL);
        RPCXException error = failure(sum);
        assertThat(error.code()).isEqualTo(RPCXException.Code.CANCELLED);
        assertThat(error).hasMessageContaining("nothing to send");
        peer.error(id, RPCXException.Code.CANCELLED);
        await().until(() -> connection().load() == 0);
    }

    @Test
    void aBlockingCallOfAThreadThatIsInterruptedAlreadyIsNotSent() throws Exception {
        connect(1);
        Thread.currentThread().interrupt();
        assertThatThrownBy(() -> calls.blocking("a")).isInstanceOfSatisfying(RPCXException.class, e -> {
            assertThat(e.code()).isEqualTo(RPCXException.Code.CANCELLED);
            assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        });
        assertThat(Thread.interrupted()).isTrue();
        CompletableFuture<String> next = calls.call("next");
        RawPeer.Frame request = peer.read(Wire.REQUEST);
        assertThat(new String(request.payload(), StandardCharsets.UTF_8)).endsWith("next");
        peer.reply(request.id(), "next");
        assertThat(next.get(10, TimeUnit.SECONDS)).isEqualTo("next");
    }

    @Test
    void aStreamThatIsCancelledAfterItsEndMeetsNoOtherCall() throws Exception {
        connect(1);
        StreamsTest.Collected<String> collected = new StreamsTest.Collected<>(5);
        calls.items().subscribe(collected);
        int id = peer.read(Wire.REQUEST).id();
        peer.send(Wire.REPLY, id);
        assertThat(collected.all()).isEmpty();
        await().until(() -> connection().load() == 0);
        // the slot is used as often as its generation has numbers, and one of these uses is sent. The next call then
        // has the id of the stream
        ClientConnection connection = connection();
        for (int use = 2; use < 0xFFFF; use++) {
            connection.slots.acquire(0).dropUnsent();
        }
        CompletableFuture<String> between = calls.call("between");
        peer.reply(peer.read(Wire.REQUEST).id(), "between");
        assertThat(between.get(10, TimeUnit.SECONDS)).isEqualTo("between");
        CompletableFuture<String> next = calls.call("next");
        RawPeer.Frame request = peer.read(Wire.REQUEST);
        assertThat(request.id()).isEqualTo(id);
        collected.begin.join().cancel();
        peer.send(Wire.PING, 0);
        assertThat(peer.read().type()).isEqualTo(Wire.PONG);
        peer.reply(request.id(), "next");
        assertThat(next.get(10, TimeUnit.SECONDS)).isEqualTo("next");
    }
}
