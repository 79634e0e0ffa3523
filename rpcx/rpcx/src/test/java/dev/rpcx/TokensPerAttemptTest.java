package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.client.ClientConnection;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests calls with more than one attempt. Each attempt has a token of its own. A call that is refused has not been
 * executed.
 */
@Timeout(60)
class TokensPerAttemptTest {
    private static final byte[] ALICE = "alice's own secret".getBytes(StandardCharsets.UTF_8);

    @RPCXServer("store")
    static final class Store {
        final AtomicInteger handled = new AtomicInteger();
        final CountDownLatch release = new CountDownLatch(1);

        @Method
        String secondTime() {
            if (handled.incrementAndGet() == 1) {
                throw new RPCXException(RPCXException.Code.UNAVAILABLE, "not the first time");
            }
            return "stored";
        }

        @Method
        String slowFirst() throws InterruptedException {
            if (handled.incrementAndGet() == 1) {
                release.await();
            }
            return "stored";
        }

        @Method
        void note(String text) {
            handled.incrementAndGet();
            release.countDown();
        }

        @Method
        Flow.Publisher<String> watch() {
            handled.incrementAndGet();
            return subscriber -> subscriber.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long items) {
                    subscriber.onComplete();
                }

                @Override
                public void cancel() {}
            });
        }

        @Method
        String pretend() {
            handled.incrementAndGet();
            throw RPCXException.refused(RPCXException.Code.OVERLOADED, "as if it had not run");
        }

        @Method
        CompletableFuture<String> pretendLater() {
            handled.incrementAndGet();
            return CompletableFuture.failedFuture(
                    RPCXException.refused(RPCXException.Code.INVALID, "as if it had not run"));
        }
    }

    @RPCXClient(remoteServerName = "store")
    interface StoreClient {
        @Method(idempotent = true)
        String secondTime();

        @Method(idempotent = true, hedgeMillis = 5)
        String slowFirst();

        @OneWay
        void note(String text);

        Flow.Publisher<String> watch();

        String pretend();

        CompletableFuture<String> pretendLater();
    }

    private final Store store = new Store();
    private final List<Server> servers = new ArrayList<>();
    private Client client;

    @BeforeEach
    void start() {
        client = Client.builder().interceptor(Tokens.signing("alice", ALICE)).build();
    }

    @AfterEach
    void stop() {
        store.release.countDown();
        client.close();
        servers.forEach(server -> server.stop(Duration.ofMillis(200)));
    }

    private int serving(Interceptor... interceptors) {
        Server.Builder builder = Server.builder(RegistryServer.registry(store)).host("127.0.0.1");
        for (Interceptor interceptor : interceptors) {
            builder.interceptor(interceptor);
        }
        Server server = builder.build().start();
        servers.add(server);
        return server.port();
    }

    private StoreClient signedTo(Interceptor requiring) {
        return client.create(StoreClient.class, "127.0.0.1", serving(requiring));
    }

    private static Interceptor requiring() {
        return Tokens.requiring(Map.of("alice", ALICE)::get);
    }

    @RPCXClient(remoteServerName = "store")
    interface Echo {
        CompletableFuture<String> echo(String text);

        @OneWay
        @Method(idempotent = true)
        void bytes(byte[] bytes);
    }

    /** Reads the metadata that follow the names and the time. */
    private static Metadata metadata(ByteBuf payload) {
        payload.skipBytes(payload.readByte()).skipBytes(payload.readByte());
        assertThat(Varint.read(payload)).isPositive();
        return MetadataFields.read(payload);
    }

    /** The metadata that are sent in front of the arguments may change. The arguments do not change. */
    @ParameterizedTest
    @ValueSource(strings = {"again", "and once more", "2"})
    void aSmallRequestIsComputedAgainOnceItHasWaitedForMoreThanTenSeconds(String then) {
        HandPlatform hand = new HandPlatform();
        AtomicInteger computed = new AtomicInteger();
        Client waiting = Client.builder()
                .platform(hand)
                .connections(1, 1)
                .callTimeout(Duration.ofMinutes(5))
                .keepAlive(Duration.ofMinutes(10))
                .interceptor((call, next) -> next.proceed(
                        call.withEachAttempt("count", () -> computed.incrementAndGet() <= 3 ? "first" : then)))
                .build();
        Echo echo = waiting.create(Echo.class, "peer", 1);
        List<CompletableFuture<?>> calls = new ArrayList<>();
        calls.add(echo.echo("a"));
        EmbeddedChannel channel = hand.opened.get(0);
        hand.settle(channel);
        ByteBuf settings = Unpooled.buffer();
        ProtoFields.writeNumber(settings, Settings.DEFAULT_MICROS, TimeUnit.MINUTES.toMicros(5));
        ByteBuf said = RawPeer.preface();
        said.writeBytes(RawPeer.frame(Wire.SETTINGS, 0, settings));
        said.writeBytes(RawPeer.frame(Wire.DICTIONARY, 0, Unpooled.EMPTY_BUFFER));
        read(hand, channel, said);
        HandPlatform.written(channel);
        hand.reads(channel, false);
        calls.add(echo.echo("b"));
        hand.settle(channel);
        hand.pass(channel, 10, TimeUnit.SECONDS);
        hand.reads(channel, true);
        ByteBuf early = request(HandPlatform.written(channel));
        assertThat(metadata(early).get("count")).isEqualTo("first");
        assertThat(early).isEqualTo(RawPeer.text("b"));
        assertThat(computed).hasValue(2);
        hand.reads(channel, false);
        echo.bytes(new byte[] {1, 2, 3});
        hand.settle(channel);
        hand.pass(channel, 10, TimeUnit.SECONDS);
        hand.pass(channel, 1, TimeUnit.NANOSECONDS);
        hand.reads(channel, true);
        for (int i = 0; i < 2; i++) {
            ByteBuf notice = Unpooled.wrappedBuffer(HandPlatform.written(channel));
            Varint.read(notice);
            assertThat(notice.readByte() & Wire.TYPE_MASK).isEqualTo(Wire.NOTICE);
            int id = notice.readInt();
            assertThat(metadata(notice).get("count")).isEqualTo(then);
            assertThat(ByteBufUtil.getBytes(notice)).endsWith(1, 2, 3).hasSize(5);
            assertThat(computed).hasValue(4 + i);
            ByteBuf refusal = Unpooled.buffer();
            WireError.write(refusal, RPCXException.refused(RPCXException.Code.UNAVAILABLE, "by the test"));
            read(hand, channel, RawPeer.frame(i == 0 ? Wire.ERROR : Wire.REPLY, id, i == 0 ? refusal : said.clear()));
        }
        hand.end(waiting, channel, calls);
    }

    private static void read(HandPlatform hand, EmbeddedChannel channel, ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        hand.read(channel, all, 0, all.length);
    }

    /**
     * The connection is slow. A token is good for 30 s, and a large request may wait for longer until its first frame
     * is sent.
     */
    @ParameterizedTest
    @ValueSource(strings = {"again", "and once more", "2"})
    void aRequestThatHasWaitedLongForOthersIsSentWithWhatIsComputedThen(String then) throws InterruptedException {
        HandPlatform hand = new HandPlatform();
        AtomicInteger computed = new AtomicInteger();
        Supplier<String> count = () -> {
            boolean isFirst = computed.incrementAndGet() <= 2;
            if (!isFirst) {
                Thread.currentThread().interrupt();
            }
            return isFirst ? "first" : then;
        };
        Client waiting = Client.builder()
                .platform(hand)
                .connections(1, 1)
                .callTimeout(Duration.ofMinutes(5))
                .keepAlive(Duration.ofMinutes(10))
                .interceptor((call, next) ->
                        next.proceed(call.withEachAttempt("count", count).with("fixed", "f")))
                .build();
        Echo echo = waiting.create(Echo.class, "peer", 1);
        CompletableFuture<String> small = echo.echo("a");
        EmbeddedChannel channel = hand.opened.get(0);
        hand.settle(channel);
        ByteBuf said = RawPeer.preface();
        said.writeBytes(RawPeer.frame(Wire.DICTIONARY, 0, Unpooled.EMPTY_BUFFER));
        byte[] greeting = ByteBufUtil.getBytes(said);
        hand.read(channel, greeting, 0, greeting.length);
        HandPlatform.written(channel);
        hand.reads(channel, false);
        String text = "x".repeat(50_000);
        CompletableFuture<String> large = echo.echo(text);
        hand.settle(channel);
        assertThat(computed).hasValue(2);
        hand.pass(channel, 11, TimeUnit.SECONDS);
        AtomicBoolean isInterrupted = new AtomicBoolean();
        Thread loop = new LoopThread(
                () -> {
                    hand.reads(channel, true);
                    isInterrupted.set(Thread.currentThread().isInterrupted());
                },
                "loop");
        loop.start();
        loop.join();
        assertThat(isInterrupted).as("left to whatever runs there next").isFalse();
        ByteBuf request = request(HandPlatform.written(channel));
        request.skipBytes(request.readByte()).skipBytes(request.readByte());
        assertThat(TimeUnit.MICROSECONDS.toSeconds(Varint.read(request))).isEqualTo(5 * 60 - 11);
        Metadata metadata = MetadataFields.read(request);
        assertThat(metadata.get("count")).isEqualTo(then);
        assertThat(metadata.get("fixed")).isEqualTo("f");
        assertThat(request).isEqualTo(RawPeer.text(text));
        assertThat(computed).hasValue(3);
        hand.end(waiting, channel, List.of(small, large));
    }

    /** Joins the payloads of one request and its parts. */
    private static ByteBuf request(byte[] written) {
        ByteBuf frames = Unpooled.wrappedBuffer(written);
        ByteBuf whole = Unpooled.buffer();
        while (frames.isReadable()) {
            int length = Varint.readLength(frames, Wire.MAX_FRAME_BYTES, "a frame");
            int type = frames.readByte() & Wire.TYPE_MASK;
            frames.skipBytes(Integer.BYTES);
            ByteBuf payload = frames.readSlice(length - Wire.HEAD_BYTES);
            if (type == Wire.REQUEST || type == Wire.PART) {
                whole.writeBytes(payload);
            }
        }
        return whole;
    }

    @Test
    void aCallThatIsMadeAgainIsSignedAgain() {
        assertThat(signedTo(requiring()).secondTime()).isEqualTo("stored");
        assertThat(store.handled).hasValue(2);
    }

    @Test
    void bothCallsOfAHedgedOneAreGood() {
        assertThat(signedTo(requiring()).slowFirst()).isEqualTo("stored");
        assertThat(store.handled).hasValue(2);
    }

    @Test
    void eachSubscriptionOfOneStreamIsSignedAnew() {
        Flow.Publisher<String> items = signedTo(requiring()).watch();
        for (int i = 0; i < 3; i++) {
            assertThat(end(items).join()).isEqualTo("completed");
        }
        assertThat(store.handled).hasValue(3);
    }

    /** Subscribes, and returns how the stream ends. */
    private static CompletableFuture<String> end(Flow.Publisher<String> items) {
        CompletableFuture<String> ended = new CompletableFuture<>();
        items.subscribe(new Flow.Subscriber<>() {
            @Override
            public void onSubscribe(Flow.Subscription subscription) {
                subscription.request(1);
            }

            @Override
            public void onNext(String item) {}

            @Override
            public void onError(Throwable failure) {
                ended.completeExceptionally(failure);
            }

            @Override
            public void onComplete() {
                ended.complete("completed");
            }
        });
        return ended;
    }

    @Test
    void anUnsignedCallThatNobodyWaitsForIsNotHandled() throws Exception {
        int port = serving(requiring());
        try (Client stranger = Client.standard()) {
            stranger.create(StoreClient.class, "127.0.0.1", port).note("unsigned");
            // this call comes later on the same connection
            assertThatThrownBy(stranger.create(StoreClient.class, "127.0.0.1", port)::pretend)
                    .hasMessage("no valid token");
        }
        client.create(StoreClient.class, "127.0.0.1", port).note("signed");
        store.release.await();
        assertThat(store.handled).hasValue(1);
    }

    private static void assertEnd(Throwable thrown, RPCXException.Code code, RPCXException.Executed executed) {
        Throwable end = thrown instanceof CompletionException ? thrown.getCause() : thrown;
        assertThat(end).isInstanceOfSatisfying(RPCXException.class, e -> {
            assertThat(e.code()).isEqualTo(code);
            assertThat(e.executed()).isEqualTo(executed);
        });
    }

    @Test
    void whatAnInterceptorRefusesHasNotBeenExecuted() {
        int port = serving(requiring());
        try (Client stranger = Client.standard()) {
            StoreClient calls = stranger.create(StoreClient.class, "127.0.0.1", port);
            assertThatThrownBy(calls::pretend)
                    .satisfies(
                            e -> assertEnd(e, RPCXException.Code.UNAUTHENTICATED, RPCXException.Executed.NOT_EXECUTED));
            assertThatThrownBy(() -> calls.pretendLater().join())
                    .satisfies(
                            e -> assertEnd(e, RPCXException.Code.UNAUTHENTICATED, RPCXException.Executed.NOT_EXECUTED));
        }
        assertThat(store.handled).hasValue(0);
    }

    @Test
    void aHandlerThatRanCannotSayThatItDidNot() {
        Interceptor lying = (call, next) -> {
            next.proceed(call);
            throw RPCXException.refused(RPCXException.Code.INVALID, "too late");
        };
        int[] ports = {serving(), serving((call, next) -> next.proceed(call)), serving(lying)};
        for (int port : ports) {
            StoreClient calls = client.create(StoreClient.class, "127.0.0.1", port);
            assertThatThrownBy(calls::pretend)
                    .satisfies(e -> assertEnd(e, RPCXException.Code.OVERLOADED, RPCXException.Executed.EXECUTED));
            assertThatThrownBy(() -> calls.pretendLater().join())
                    .satisfies(e -> assertEnd(e, RPCXException.Code.INVALID, RPCXException.Executed.EXECUTED));
        }
        assertThat(store.handled).hasValue(6);
    }

    /**
     * More such calls fail than a connection has slots. So this test also shows that a failed attempt gives back what
     * it has taken.
     */
    @Test
    void anEntryThatCannotBeComputedEndsItsCallAndNoOther() {
        Interceptor signing = Tokens.signing("alice", ALICE);
        boolean[] broken = {true};
        Interceptor breaking = (call, next) -> next.proceed(
                broken[0]
                        ? call.withEachAttempt("broken", () -> {
                            throw new IllegalStateException("no value");
                        })
                        : call.withEachAttempt("broken", () -> "once").with("broken", "whole"));
        try (Client other = Client.builder()
                .interceptor(signing)
                .interceptor(breaking)
                .connections(1)
                .build()) {
            StoreClient calls = other.create(StoreClient.class, "127.0.0.1", serving(requiring()));
            for (int i = 0; i < 5000; i++) {
                assertThatThrownBy(calls::secondTime).hasMessageContaining("no value");
                assertThatThrownBy(() -> calls.pretendLater().join()).hasMessageContaining("no value");
            }
            broken[0] = false;
            assertThat(calls.secondTime()).isEqualTo("stored");
        }
    }

    /** Throws an exception that the method does not declare. */
    @SuppressWarnings("unchecked")
    private static <E extends Throwable> String sneaky(Throwable thrown) throws E {
        throw (E) thrown;
    }

    @Test
    void whateverAnEntryThrowsTheCallEndsByOneExceptionAndHoldsNothing() {
        Throwable[] thrown = {
            new AssertionError("a broken entry"),
            new java.io.IOException("a broken entry"),
            new RPCXException(RPCXException.Code.UNAVAILABLE, "a broken entry"),
        };
        Throwable[] next = {null};
        Interceptor breaking = (call, rest) ->
                rest.proceed(call.withEachAttempt("broken", () -> next[0] == null ? null : sneaky(next[0])));
        try (Client other =
                Client.builder().interceptor(breaking).connections(1).build()) {
            StoreClient calls = other.create(StoreClient.class, "127.0.0.1", serving());
            for (int i = 0; i <= thrown.length; i++) {
                next[0] = i < thrown.length ? thrown[i] : null;
                RPCXException.Code code =
                        next[0] instanceof RPCXException known ? known.code() : RPCXException.Code.INVALID;
                List<org.assertj.core.api.ThrowableAssert.ThrowingCallable> all = List.of(
                        calls::pretend,
                        calls::slowFirst,
                        () -> calls.note("a"),
                        () -> calls.pretendLater().join(),
                        () -> end(calls.watch()).join());
                for (org.assertj.core.api.ThrowableAssert.ThrowingCallable call : all) {
                    assertThatThrownBy(call)
                            .hasMessageContaining("\"broken\"")
                            .satisfies(e -> assertEnd(e, code, RPCXException.Executed.NOT_EXECUTED));
                }
            }
            ClientConnection connection =
                    other.core().channels.keySet().iterator().next().pipeline().get(ClientConnection.class);
            assertThat(connection.slots.taken()).isZero();
            assertThat(other.core().ledger().held(Resource.STREAMS)).isZero();
        }
        assertThat(store.handled).hasValue(0);
    }

    @Test
    void metadataHasOneEntryOfAName() {
        AtomicInteger computed = new AtomicInteger();
        Metadata each = Metadata.EMPTY
                .with("a", "1")
                .withEachAttempt("a", () -> String.valueOf(computed.incrementAndGet()))
                .with("b", "2");
        assertThat(each.entries()).containsOnlyKeys("b");
        assertThat(each.isEmpty()).isFalse();
        assertThat(Metadata.EMPTY.withEachAttempt("a", () -> "x").isEmpty()).isFalse();
        assertThat(each.get("a")).isEqualTo("1");
        assertThat(each.get("a")).isEqualTo("2");
        io.netty.buffer.ByteBuf out = io.netty.buffer.Unpooled.buffer();
        MetadataFields.write(out, each);
        assertThat(computed).hasValue(3);
        assertThat(MetadataFields.read(out).entries()).containsOnly(Map.entry("a", "3"), Map.entry("b", "2"));
        assertThat(each.with("a", "4").get("a")).isEqualTo("4");
        assertThat(each.toString()).contains("a", "b").doesNotContain("2");
        assertThatThrownBy(() -> Metadata.EMPTY.withEachAttempt("", () -> "x")).hasMessageContaining("empty");
    }

    /**
     * Continues the call on a thread that knows of no call. An interceptor that waits for the answer of another service
     * does the same.
     */
    private static Interceptor checkingElsewhere() {
        return (call, next) -> {
            CompletableFuture<Boolean> check = new CompletableFuture<>();
            CompletableFuture<Object> result = check.thenCompose(good -> {
                try {
                    Object brought = next.proceed(call.with("checked", "yes").withArguments(call.arguments()));
                    return brought instanceof java.util.concurrent.CompletionStage<?> stage
                            ? stage.thenApply(value -> value)
                            : CompletableFuture.completedFuture(brought);
                } catch (Throwable e) {
                    return CompletableFuture.failedFuture(e);
                }
            });
            new Thread(() -> check.complete(true), "check").start();
            return result;
        };
    }

    @Test
    void aHandlerThatRanBehindACheckOnAnotherThreadCannotSayThatItDidNot() {
        StoreClient calls = client.create(StoreClient.class, "127.0.0.1", serving(checkingElsewhere()));
        assertThatThrownBy(() -> calls.pretendLater().join())
                .satisfies(e -> assertEnd(e, RPCXException.Code.INVALID, RPCXException.Executed.EXECUTED));
        assertThatThrownBy(calls::pretend)
                .satisfies(e -> assertEnd(e, RPCXException.Code.OVERLOADED, RPCXException.Executed.EXECUTED));
        assertThat(store.handled).hasValue(2);
    }

    @Test
    void aCallThatWasRefusedDoesNotBeginItsHandlerLater() {
        List<org.assertj.core.api.ThrowableAssert.ThrowingCallable> late = new ArrayList<>();
        Interceptor hasty = (call, next) -> {
            late.add(() -> next.proceed(call));
            throw RPCXException.refused(RPCXException.Code.OVERLOADED, "the check takes too long");
        };
        StoreClient calls = client.create(StoreClient.class, "127.0.0.1", serving(hasty));
        assertThatThrownBy(() -> calls.pretendLater().join())
                .satisfies(e -> assertEnd(e, RPCXException.Code.OVERLOADED, RPCXException.Executed.NOT_EXECUTED));
        assertThatThrownBy(late.get(0))
                .satisfies(e -> assertEnd(e, RPCXException.Code.CANCELLED, RPCXException.Executed.NOT_EXECUTED));
        assertThat(store.handled).hasValue(0);
    }

    @Test
    void whateverAnInterceptorThrowsBeforeItProceedsTheHandlerHasNotRun() {
        for (Throwable thrown : List.of(
                new IllegalStateException("no check"),
                new AssertionError("no check"),
                new java.io.IOException("no check"))) {
            Interceptor throwing = (call, next) -> {
                throw thrown;
            };
            Interceptor failing = (call, next) -> CompletableFuture.failedFuture(thrown);
            for (Interceptor broken : List.of(throwing, failing)) {
                StoreClient calls = client.create(StoreClient.class, "127.0.0.1", serving(broken));
                assertThatThrownBy(calls::pretend)
                        .hasMessage("no check")
                        .satisfies(e ->
                                assertEnd(e, RPCXException.Code.HANDLER_FAILED, RPCXException.Executed.NOT_EXECUTED));
            }
        }
        // a future is not what a method with a stream has to return
        StoreClient early =
                client.create(StoreClient.class, "127.0.0.1", serving((call, next) -> new CompletableFuture<Object>()));
        assertThatThrownBy(() -> end(early.watch()).join())
                .satisfies(e -> assertEnd(e, RPCXException.Code.HANDLER_FAILED, RPCXException.Executed.NOT_EXECUTED));
        Interceptor after = (call, next) -> {
            next.proceed(call);
            throw new IllegalStateException("no reply");
        };
        StoreClient calls = client.create(StoreClient.class, "127.0.0.1", serving(after));
        assertThatThrownBy(() -> calls.pretendLater().join())
                .satisfies(e -> assertEnd(e, RPCXException.Code.HANDLER_FAILED, RPCXException.Executed.EXECUTED));
        assertThat(store.handled).hasValue(1);
    }
}
