package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.FloodGuard;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.EOFException;
import java.io.IOException;
import java.net.SocketException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests single things that a peer or a handler can do to a server. The server has to survive them, and nothing may be
 * left of them.
 */
@Timeout(60)
class HostilePeerTest {
    record Asserted(String text) {
        Asserted {
            if (text.equals("bad")) {
                throw new AssertionError("a text that is bad");
            }
        }

        @Override
        public String text() {
            if (text.equals("unsendable")) {
                throw new AssertionError("a text that cannot be sent");
            }
            return text;
        }
    }

    /** Asks for all it can get. */
    private static class Greedy implements Flow.Subscriber<String> {
        final CompletableFuture<Integer> end = new CompletableFuture<>();
        final AtomicInteger taken = new AtomicInteger();

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            subscription.request(Long.MAX_VALUE);
        }

        @Override
        public void onNext(String item) {
            taken.incrementAndGet();
        }

        @Override
        public void onError(Throwable thrown) {
            end.completeExceptionally(thrown);
        }

        @Override
        public void onComplete() {
            end.complete(taken.get());
        }
    }

    @RPCXServer("besieged")
    static final class Service {
        final CompletableFuture<String> unanswered = new CompletableFuture<>();
        final AtomicInteger entered = new AtomicInteger();
        final AtomicInteger made = new AtomicInteger();
        final CompletableFuture<Boolean> ended = new CompletableFuture<>();
        final CountDownLatch release = new CountDownLatch(1);

        @Method
        String hello(String name) {
            return name;
        }

        @Method
        void block() throws InterruptedException {
            entered.incrementAndGet();
            boolean interrupted = false;
            while (true) {
                try {
                    release.await();
                    break;
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }

        /** Its result never comes. */
        @Method
        CompletableFuture<String> never() {
            entered.incrementAndGet();
            return unanswered;
        }

        @Method
        void untilInterrupted() throws InterruptedException {
            entered.incrementAndGet();
            try {
                new CountDownLatch(1).await();
            } finally {
                ended.complete(CallContext.current().orElseThrow().isCancelled());
            }
        }

        /** Asks for what no subscriber may ask for. */
        @Method
        CompletableFuture<Integer> asksForNothing(Flow.Publisher<String> items) {
            Greedy all = new Greedy() {
                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    subscription.request(0);
                }
            };
            items.subscribe(all);
            return all.end;
        }

        @Method
        int collect(Flow.Publisher<String> items) {
            entered.incrementAndGet();
            Greedy all = new Greedy();
            items.subscribe(all);
            try {
                return all.end.join();
            } finally {
                ended.complete(true);
            }
        }

        @Method
        CompletableFuture<Integer> slow(Flow.Publisher<String> items) {
            Greedy all = new Greedy() {
                @Override
                public void onNext(String item) {
                    entered.incrementAndGet();
                    try {
                        release.await();
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                    super.onNext(item);
                }
            };
            items.subscribe(all);
            return all.end;
        }

        @Method
        Flow.Publisher<String> endless() {
            String item = "x".repeat(10_000);
            return new StreamsTest.Made<>(Integer.MAX_VALUE, i -> {
                made.incrementAndGet();
                return item;
            });
        }

        /** Makes items without being asked. */
        @Method
        Flow.Publisher<String> flooding() {
            return subscriber -> {
                subscriber.onSubscribe(new Flow.Subscription() {
                    @Override
                    public void request(long n) {}

                    @Override
                    public void cancel() {
                        ended.complete(true);
                    }
                });
                for (int i = 0; i < 1000 && !ended.isDone(); i++) {
                    subscriber.onNext("item " + i);
                }
            };
        }

        @Method
        Flow.Publisher<String> blocking() {
            return subscriber -> subscriber.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long n) {
                    entered.incrementAndGet();
                    try {
                        release.await();
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                    subscriber.onComplete();
                }

                @Override
                public void cancel() {}
            });
        }

        @Method
        Flow.Publisher<String> broken() {
            return subscriber -> {
                throw new StackOverflowError("no publisher");
            };
        }

        @Method
        Asserted asserted(String text) {
            return new Asserted(text);
        }

        @Method
        String reads(Asserted text) {
            return "read";
        }
    }

    @RPCXClient(remoteServerName = "besieged")
    interface Calls {
        String hello(String name);

        Flow.Publisher<String> broken();

        Flow.Publisher<String> flooding();

        Asserted asserted(String text);
    }

    @RPCXClient(remoteServerName = "besieged")
    interface OneWayStream {
        @OneWay
        void collect(Flow.Publisher<String> items);
    }

    @RPCXServer("one-way")
    static final class OneWayService {
        @Method
        @OneWay
        public void collect(Flow.Publisher<String> items) {}
    }

    private final Service service = new Service();
    private Server server = serve(builder());

    private Server.Builder builder() {
        return Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .eventLoops(1);
    }

    private static Server serve(Server.Builder builder) {
        return builder.build().start();
    }

    @AfterEach
    void stop() {
        service.release.countDown();
        service.unanswered.complete("too late");
        server.stop(Duration.ofMillis(200));
    }

    private RawPeer greeted() throws IOException {
        RawPeer raw = new RawPeer(server.port());
        raw.send(RawPeer.preface());
        raw.readPreface();
        return raw;
    }

    private static ByteBuf number(long value) {
        ByteBuf bytes = Unpooled.buffer();
        Varint.write(bytes, value);
        return bytes;
    }

    private static ByteBuf timed(int type, int id, String method, long millis, ByteBuf body) {
        ByteBuf payload = RawPeer.prelude("besieged", method);
        Varint.write(payload, millis * 1000);
        return RawPeer.frame(type | Wire.NAMED | Wire.TIME, id, payload.writeBytes(body));
    }

    private static ByteBuf empty(int type, int id, String method) {
        return RawPeer.frame(type | Wire.NAMED, id, RawPeer.prelude("besieged", method));
    }

    private static RPCXException error(RawPeer.Frame frame) {
        assertThat(frame.type()).isEqualTo(Wire.ERROR);
        return WireError.read(Unpooled.wrappedBuffer(frame.payload()));
    }

    private static final int FIRST = 1 << 16;

    /**
     * Waits until this many handlers have begun, or no call is left that could begin one. Returns whether they have
     * begun.
     */
    private boolean haveBegun(int handlers) {
        await().until(() -> service.entered.get() == handlers || server.core().running() == 0);
        return service.entered.get() == handlers;
    }

    @Test
    void aNoticeToAMethodWithAStreamIsRefusedBeforeItRuns() throws Exception {
        try (RawPeer raw = greeted()) {
            for (String method : new String[] {"collect", "endless"}) {
                raw.send(empty(Wire.NOTICE, FIRST + (method.equals("collect") ? 0 : 1), method));
                RPCXException error = error(raw.readAnswer());
                assertThat(error.code()).isEqualTo(RPCXException.Code.INVALID);
                assertThat(error.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            }
            assertThat(service.entered).hasValue(0);
            assertThat(server.core().running()).isZero();
        }
    }

    @Test
    void aOneWayMethodWithAStreamIsRefusedWhereItIsMade() {
        try (Client client = Client.standard()) {
            assertThatThrownBy(() -> client.create(OneWayStream.class, "127.0.0.1", server.port()))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("one-way");
        }
        assertThatThrownBy(() -> Server.builder(RegistryServer.registry(new OneWayService()))
                        .build())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("one-way");
    }

    @Test
    void aHandlerThatWaitsForItemsEndsWithTheTimeOfItsCall() throws Exception {
        try (RawPeer raw = greeted()) {
            AtomicInteger ids = new AtomicInteger(FIRST);
            Again.inTwiceTheTime(200, millis -> {
                raw.send(timed(Wire.REQUEST, ids.getAndIncrement(), "collect", millis, Unpooled.EMPTY_BUFFER));
                RawPeer.Frame answer = raw.readAnswer();
                if (answer.type() == Wire.CREDIT) {
                    return true;
                }
                // the time of the call was over before its handler asked for items
                assertThat(error(answer).code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
                return false;
            });
            assertThat(error(raw.readAnswer()).code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
            assertThat(service.ended.join()).isTrue();
            await().until(() -> server.core().running() == 0);
        }
    }

    @Test
    void aHandlerIsInterruptedWhenTheTimeOfItsCallIsOverThoughNobodyCancels() throws Exception {
        try (RawPeer raw = greeted()) {
            AtomicInteger ids = new AtomicInteger(FIRST);
            Again.inTwiceTheTime(500, millis -> {
                raw.send(timed(Wire.REQUEST, ids.getAndIncrement(), "untilInterrupted", millis, Unpooled.EMPTY_BUFFER));
                RPCXException error = error(raw.readAnswer());
                assertThat(error.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
                if (!haveBegun(1)) {
                    return false;
                }
                assertThat(error.executed()).isEqualTo(RPCXException.Executed.MAYBE);
                return true;
            });
            assertThat(service.ended.get(20, TimeUnit.SECONDS))
                    .as("the handler knows that it is cancelled")
                    .isTrue();
            await().until(() -> server.core().running() == 0);
            raw.send(RawPeer.request(FIRST + FIRST, "besieged", "hello", "again"));
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.REPLY);
        }
    }

    @Test
    void aResultThatNeverComesEndsWithTheTimeOfItsCall() throws Exception {
        try (RawPeer raw = greeted()) {
            AtomicInteger ids = new AtomicInteger(FIRST);
            Again.inTwiceTheTime(200, millis -> {
                int before = service.entered.get();
                int late = ids.getAndAdd(2);
                int soon = late + 1;
                raw.send(timed(Wire.REQUEST, late, "never", 15 * millis, Unpooled.EMPTY_BUFFER));
                raw.send(timed(Wire.REQUEST, soon, "never", millis, Unpooled.EMPTY_BUFFER));
                RawPeer.Frame first = raw.readAnswer();
                RawPeer.Frame second = raw.readAnswer();
                if (!haveBegun(before + 2)) {
                    return false;
                }
                assertThat(first.id()).isEqualTo(soon);
                assertThat(second.id()).isEqualTo(late);
                for (RawPeer.Frame frame : new RawPeer.Frame[] {first, second}) {
                    RPCXException error = error(frame);
                    assertThat(error.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
                    assertThat(error.executed()).isEqualTo(RPCXException.Executed.MAYBE);
                }
                return true;
            });
        }
    }

    @Test
    void aSubscriberThatAsksForNothingIsToldOfItsFault() throws Exception {
        try (RawPeer raw = greeted()) {
            raw.send(empty(Wire.REQUEST, FIRST, "asksForNothing"));
            RPCXException error = error(raw.readAnswer());
            assertThat(error.code()).isEqualTo(RPCXException.Code.HANDLER_FAILED);
            assertThat(error).hasMessageContaining("request of 0 items");
        }
    }

    @Test
    void aStreamThatNobodyReadsEndsWithTheTimeOfItsCall() throws Exception {
        try (RawPeer raw = greeted()) {
            raw.send(timed(Wire.REQUEST, FIRST, "endless", 200, Unpooled.EMPTY_BUFFER));
            assertThat(error(raw.readAnswer()).code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
        }
    }

    @Test
    void aRequestThatStandsStillEndsWithItsTime() throws Exception {
        try (RawPeer raw = greeted()) {
            raw.send(timed(Wire.REQUEST | Wire.MORE, FIRST, "hello", 200, RawPeer.text("x".repeat(10_000))));
            RPCXException error = error(raw.readAnswer());
            assertThat(error.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
            assertThat(error.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            assertThat(server.core().ledger().held(Resource.REQUEST_BYTES)).isZero();
        }
    }

    @Test
    void aRequestWithMuchTimeThatStandsStillEndsAllTheSame() throws Exception {
        stop();
        server = serve(builder().keepAlive(Duration.ofMillis(600)));
        // where the machine stands still, an answer to a ping is late, and the connection ends
        Again.upToFiveTimes(40, () -> {
            RawPeer.Frame frame = endOfUnfinished(3_600_000);
            assertThat(frame).isNotNull();
            RPCXException error = error(frame);
            assertThat(error.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
            assertThat(error.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        });
    }

    /**
     * Begins a request, and answers every ping so that the connection stays.
     *
     * @return null if the connection has ended, as it does where an answer to a ping was late
     */
    private RawPeer.@Nullable Frame endOfUnfinished(long millis) throws IOException {
        try (RawPeer raw = greeted()) {
            raw.send(timed(Wire.REQUEST | Wire.MORE, FIRST, "hello", millis, RawPeer.text("x".repeat(10_000))));
            RawPeer.Frame frame = raw.readAnswer();
            while (frame.type() == Wire.PING) {
                raw.send(RawPeer.frame(Wire.PONG, frame.id(), Unpooled.EMPTY_BUFFER));
                frame = raw.readAnswer();
            }
            return frame;
        } catch (EOFException | SocketException ended) {
            return null;
        }
    }

    @Test
    void aReaderThatGivesCreditAndReadsNothingMakesThePublisherWait() throws Exception {
        try (RawPeer raw = new RawPeer(server.port())) {
            raw.send(RawPeer.preface()
                    .writeBytes(timed(Wire.REQUEST, FIRST, "endless", 60_000, Unpooled.EMPTY_BUFFER))
                    .writeBytes(RawPeer.frame(Wire.CREDIT, FIRST, number(1L << 40))));
            await().until(() -> service.made.get() > 10);
            await().during(Duration.ofMillis(500)).until(() -> {
                long most = server.core().ledger().held(Resource.ITEM_BYTES_OUT)
                        + server.core().ledger().held(Resource.REPLY_BYTES);
                return most < 1024 * 1024 && service.made.get() < 4000;
            });
        }
    }

    @Test
    void aPublisherThatIgnoresDemandIsCutOff() {
        try (Client client = Client.standard()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            StreamsTest.Collected<String> all = new StreamsTest.Collected<>(1);
            calls.flooding().subscribe(all);
            assertThatThrownBy(all::all).hasMessageContaining("asked");
            assertThat(service.ended.join()).isTrue();
        }
    }

    @Test
    void itemsThatComeInPartsAndAreNotTakenAreCounted() throws Exception {
        try (RawPeer raw = greeted()) {
            raw.send(empty(Wire.REQUEST, FIRST, "slow"));
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.CREDIT);
            ByteBuf part = Unpooled.wrappedBuffer(new byte[10_000]);
            raw.send(RawPeer.frame(Wire.ITEM | Wire.MORE, FIRST, part));
            for (int i = 0; i < 9; i++) {
                raw.send(RawPeer.frame(Wire.PART | Wire.MORE, FIRST, part));
            }
            await().until(() -> server.core().ledger().held(Resource.ITEM_BYTES_IN) >= 100_000);
            assertThat(server.core().ledger().held(Resource.STREAMS)).isEqualTo(1);
            raw.socket.close();
            await().until(() -> server.core().ledger().held(Resource.ITEM_BYTES_IN) == 0);
        }
    }

    @Test
    void itemsThatNobodyTakesEndTheirCallAndNotTheServer() throws Exception {
        try (RawPeer raw = greeted()) {
            raw.send(empty(Wire.REQUEST, FIRST, "slow"));
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.CREDIT);
            ByteBuf item = RawPeer.frame(Wire.ITEM, FIRST, RawPeer.text("x".repeat(16_000)));
            Thread sender = new Thread(() -> {
                try {
                    for (int i = 0; i < 100_000 && !service.ended.isDone(); i++) {
                        raw.send(item);
                    }
                } catch (IOException closed) {
                    // the server need not take all of it
                }
            });
            sender.start();
            assertThat(error(raw.readAnswer()).code()).isEqualTo(RPCXException.Code.OVERLOADED);
            service.ended.complete(true);
            sender.join();
            raw.send(RawPeer.request(FIRST + 1, "besieged", "hello", "still there"));
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.REPLY);
        }
    }

    @Test
    void aPublisherThatBlocksWhenAskedHoldsNobodyElseUp() throws Exception {
        try (RawPeer raw = greeted()) {
            raw.send(empty(Wire.REQUEST, FIRST, "blocking").writeBytes(RawPeer.frame(Wire.CREDIT, FIRST, number(1))));
            await().until(() -> service.entered.get() == 1);
            raw.send(RawPeer.frame(Wire.CREDIT, FIRST, number(1)));
            raw.send(RawPeer.request(FIRST + 1, "besieged", "hello", "quick"));
            assertThat(raw.readAnswer().id()).isEqualTo(FIRST + 1);
        }
    }

    @Test
    void aSubscriberThatBlocksHoldsNobodyElseUp() throws Exception {
        try (RawPeer raw = greeted()) {
            raw.send(empty(Wire.REQUEST, FIRST, "slow"));
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.CREDIT);
            raw.send(RawPeer.frame(Wire.ITEM, FIRST, RawPeer.text("one")));
            await().until(() -> service.entered.get() == 1);
            raw.send(RawPeer.request(FIRST + 1, "besieged", "hello", "quick"));
            assertThat(raw.readAnswer().id()).isEqualTo(FIRST + 1);
            service.release.countDown();
            raw.send(RawPeer.frame(Wire.END, FIRST, Unpooled.EMPTY_BUFFER));
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.REPLY);
        }
    }

    @Test
    void anErrorWhileReadingWritingOrPublishingIsAnAnswer() throws Exception {
        try (Client client = Client.standard();
                RawPeer raw = greeted()) {
            raw.send(RawPeer.frame(
                    Wire.REQUEST | Wire.NAMED,
                    FIRST,
                    RawPeer.prelude("besieged", "reads").writeBytes(RawPeer.text("bad"))));
            RPCXException unread = error(raw.readAnswer());
            assertThat(unread.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            assertThatThrownBy(() -> calls.asserted("unsendable")).hasMessageContaining("cannot be sent");
            StreamsTest.Collected<String> none = new StreamsTest.Collected<>(1);
            calls.broken().subscribe(none);
            assertThatThrownBy(none::all).hasMessageContaining("no publisher");
            assertThat(calls.hello("after")).isEqualTo("after");
            await().until(() -> server.core().running() == 0);
        }
    }

    @Test
    void aConnectionThatIsToBeClosedIsNotHeldByAPeerThatReadsNothing() throws Exception {
        try (RawPeer raw = new RawPeer(server.port())) {
            ByteBuf requests = RawPeer.preface();
            for (int i = 0; i < 40; i++) {
                requests.writeBytes(RawPeer.frame(
                        Wire.REQUEST | Wire.NAMED | Wire.MORE, FIRST + i, RawPeer.prelude("besieged", "hello")));
                ByteBuf text = RawPeer.text("x".repeat(400_000));
                while (text.readableBytes() > 16_000) {
                    requests.writeBytes(RawPeer.frame(Wire.PART | Wire.MORE, FIRST + i, text.readSlice(16_000)));
                }
                requests.writeBytes(RawPeer.frame(Wire.PART, FIRST + i, text));
            }
            Thread sender = new Thread(() -> {
                try {
                    raw.send(requests);
                } catch (IOException closed) {
                    // the server closes the connection, as it should
                }
            });
            sender.start();
            await().until(() -> server.core().ledger().held(Resource.REPLY_BYTES)
                            + server.core().ledger().held(Resource.QUEUE_BYTES)
                    > 0);
            // both sides have said goodbye: nobody looks for signs of life any more
            server.stop(Duration.ZERO);
            await().until(() -> server.core().ledger().held(Resource.CONNECTIONS) == 0);
            sender.join();
        }
    }

    @Test
    void aClosedConnectionIsForgottenWithItsTimers() throws Exception {
        RawPeer raw = greeted();
        await().until(() -> server.core().ledger().held(Resource.TIMERS) > 0);
        raw.close();
        await().until(() -> server.core().ledger().held(Resource.TIMERS) == 0);
    }

    @Test
    void cancelsOfCallsThatWereMadeAreNoFlood() throws Exception {
        try (RawPeer raw = greeted()) {
            int slots = 512;
            for (int generation = 1; generation * slots <= 2 * FloodGuard.MAX_CANCELS_PER_SECOND; generation++) {
                ByteBuf all = Unpooled.buffer();
                for (int slot = 0; slot < slots; slot++) {
                    int id = generation << 16 | slot;
                    all.writeBytes(RawPeer.request(id, "besieged", "hello", "x"));
                    all.writeBytes(RawPeer.frame(Wire.CANCEL, id, Unpooled.EMPTY_BUFFER));
                }
                raw.send(all);
                for (int slot = 0; slot < slots; slot++) {
                    assertThat(raw.readAnswer().id()).isNotZero();
                }
            }
        }
    }

    @Test
    void whoSendsAndCancelsHasNoMorePlacesThanWhoWaits() throws Exception {
        stop();
        Service other = new Service();
        server = serve(
                Server.builder(RegistryServer.registry(other)).host("127.0.0.1").maxCalls(8));
        try (RawPeer raw = greeted()) {
            for (int i = 0; i < 8; i++) {
                raw.send(empty(Wire.REQUEST, FIRST + i, "block"));
            }
            await().until(() -> other.entered.get() == 8);
            for (int i = 0; i < 8; i++) {
                raw.send(RawPeer.frame(Wire.CANCEL, FIRST + i, Unpooled.EMPTY_BUFFER));
                assertThat(error(raw.readAnswer()).code()).isEqualTo(RPCXException.Code.CANCELLED);
            }
            raw.send(empty(Wire.REQUEST, 2 * FIRST, "block"));
            assertThat(error(raw.readAnswer()).code()).isEqualTo(RPCXException.Code.OVERLOADED);
            other.release.countDown();
            await().until(() -> server.core().running() == 0);
        } finally {
            other.release.countDown();
        }
    }
}
