package dev.rpcx.internal.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import dev.rpcx.CallContext;
import dev.rpcx.Client;
import dev.rpcx.Inside;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RawPeer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.UnspeakableErrorsTest;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntFunction;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(60)
public class StreamsTest {
    /** Publishes items that are made only when they are requested, on the thread that requests them. */
    public static final class Made<T> implements Flow.Publisher<T> {
        public final AtomicInteger made = new AtomicInteger();
        public final CompletableFuture<Void> cancelled = new CompletableFuture<>();
        private final int count;
        private final IntFunction<T> item;

        public Made(int count, IntFunction<T> item) {
            this.count = count;
            this.item = item;
        }

        @Override
        public void subscribe(Flow.Subscriber<? super T> subscriber) {
            subscriber.onSubscribe(new Flow.Subscription() {
                private long wanted;
                private boolean making;
                private boolean over;

                @Override
                public void request(long n) {
                    wanted = n > Long.MAX_VALUE - wanted ? Long.MAX_VALUE : wanted + n;
                    if (making) {
                        return;
                    }
                    making = true;
                    while (!over && wanted > 0 && made.get() < count) {
                        wanted--;
                        subscriber.onNext(item.apply(made.getAndIncrement()));
                    }
                    making = false;
                    if (!over && made.get() == count) {
                        over = true;
                        subscriber.onComplete();
                    }
                }

                @Override
                public void cancel() {
                    over = true;
                    cancelled.complete(null);
                }
            });
            if (count == 0) {
                subscriber.onComplete();
            }
        }
    }

    /** Collects items, and requests some at a time. */
    public static class Collected<T> implements Flow.Subscriber<T> {
        public final List<T> items = Collections.synchronizedList(new ArrayList<>());
        public final CompletableFuture<List<T>> end = new CompletableFuture<>();
        public final CompletableFuture<Flow.Subscription> begin = new CompletableFuture<>();
        private final int atATime;

        public Collected(int atATime) {
            this.atATime = atATime;
        }

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            begin.complete(subscription);
            if (atATime > 0) {
                subscription.request(atATime);
            }
        }

        @Override
        public void onNext(T item) {
            items.add(item);
            if (atATime > 0 && items.size() % atATime == 0) {
                begin.join().request(atATime);
            }
        }

        @Override
        public void onError(Throwable thrown) {
            end.completeExceptionally(thrown);
        }

        @Override
        public void onComplete() {
            end.complete(items);
        }

        public List<T> all() throws Exception {
            return end.get(20, TimeUnit.SECONDS);
        }
    }

    @RPCXServer("streams")
    public static final class Service {
        public volatile Made<String> last = new Made<>(0, i -> "");

        @Method
        Flow.Publisher<String> count(int n) {
            // the field may already have another value, because calls run at the same time
            Made<String> made = new Made<>(n, i -> "item " + i);
            last = made;
            return made;
        }

        @Method
        Flow.Publisher<String> halves(String text) {
            int half = text.length() / 2;
            return new Made<>(2, i -> i == 0 ? text.substring(0, half) : text.substring(half));
        }

        @Method
        Flow.Publisher<String> large(int n) {
            return new Made<>(n, i -> (i + "-").repeat(i % 2 == 0 ? 50_000 : 1));
        }

        @Method
        Flow.Publisher<String> fail(String message) {
            throw new IllegalStateException(message);
        }

        @Method
        CompletableFuture<Long> sum(Flow.Publisher<Integer> numbers) {
            Collected<Integer> collected = new Collected<>(5);
            numbers.subscribe(collected);
            return collected.end.thenApply(
                    all -> all.stream().mapToLong(Integer::longValue).sum());
        }

        /** Returns the number of days that are left when the handler begins. */
        @Method
        long daysLeft(Flow.Publisher<Integer> numbers) {
            return TimeUnit.NANOSECONDS.toDays(
                    CallContext.current().orElseThrow().remainingNanos());
        }

        @Method
        Flow.Publisher<Long> daysLeftOfBoth(Flow.Publisher<Integer> numbers) {
            long left = daysLeft(numbers);
            return new Made<>(1, i -> left);
        }

        @Method
        long sumBlocking(Flow.Publisher<Integer> numbers) throws Exception {
            return sum(numbers).get(20, TimeUnit.SECONDS);
        }

        @Method
        CompletableFuture<Integer> countTexts(Flow.Publisher<String> texts) {
            Collected<String> collected = new Collected<>(1);
            texts.subscribe(collected);
            return collected.end.thenApply(List::size);
        }

        @Method
        int countTextsBlocking(Flow.Publisher<String> texts) throws Exception {
            return countTexts(texts).get(20, TimeUnit.SECONDS);
        }

        @Method
        Flow.Publisher<String> echo(Flow.Publisher<String> texts) {
            return subscriber -> texts.subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    subscriber.onSubscribe(subscription);
                }

                @Override
                public void onNext(String item) {
                    subscriber.onNext("echo " + item);
                }

                @Override
                public void onError(Throwable thrown) {
                    subscriber.onError(thrown);
                }

                @Override
                public void onComplete() {
                    subscriber.onComplete();
                }
            });
        }

        public final CompletableFuture<Void> free = new CompletableFuture<>();

        @Method
        Flow.Publisher<String> blocking(int n) {
            return subscriber -> {
                free.join();
                new Made<>(n, i -> "item " + i).subscribe(subscriber);
            };
        }

        @Method
        Flow.Publisher<String> refusing(String message) {
            return subscriber -> {
                throw new IllegalStateException(message);
            };
        }

        @Method
        String ping() {
            return "pong";
        }
    }

    @RPCXClient(remoteServerName = "streams")
    public interface ServiceClient {
        Flow.Publisher<String> count(int n);

        Flow.Publisher<String> halves(String text);

        Flow.Publisher<String> large(int n);

        Flow.Publisher<String> fail(String message);

        CompletableFuture<Long> sum(Flow.Publisher<Integer> numbers);

        long daysLeft(Flow.Publisher<Integer> numbers);

        @Method(value = "daysLeft", timeoutMillis = 60_000)
        long daysLeftOfAMinute(Flow.Publisher<Integer> numbers);

        Flow.Publisher<Long> daysLeftOfBoth(Flow.Publisher<Integer> numbers);

        long sumBlocking(Flow.Publisher<Integer> numbers);

        CompletableFuture<Integer> countTexts(Flow.Publisher<String> texts);

        int countTextsBlocking(Flow.Publisher<String> texts);

        Flow.Publisher<String> echo(Flow.Publisher<String> texts);

        Flow.Publisher<String> blocking(int n);

        Flow.Publisher<String> refusing(String message);

        String ping();
    }

    private final Service service = new Service();
    private Server server;
    private Client client;
    private ServiceClient remote;

    @BeforeEach
    void start() {
        server = new Server(0, RegistryServer.registry(service)).start();
        client = Client.standard();
        remote = client.create(ServiceClient.class, "127.0.0.1", server.port());
    }

    @AfterEach
    void stop() {
        assertThat(remote.ping()).isEqualTo("pong");
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    private static <T> Collected<T> collect(Flow.Publisher<T> stream, int atATime) {
        Collected<T> collected = new Collected<>(atATime);
        stream.subscribe(collected);
        return collected;
    }

    @Test
    void aServersItemsArriveInOrderAndEnd() throws Exception {
        for (int n : new int[] {0, 1, 7, 1000}) {
            assertThat(collect(remote.count(n), 7).all()).hasSize(n);
        }
        assertThat(collect(remote.count(10_000), Integer.MAX_VALUE).all())
                .startsWith("item 0", "item 1")
                .endsWith("item 9999")
                .hasSize(10_000);
    }

    @Test
    void aStreamInEitherDirectionHasAYearUnlessItsMethodSaysOtherwise() throws Exception {
        assertThat(remote.daysLeft(new Made<>(1, i -> i))).isEqualTo(364);
        assertThat(collect(remote.daysLeftOfBoth(new Made<>(1, i -> i)), 1).all())
                .containsExactly(364L);
        assertThat(remote.daysLeftOfAMinute(new Made<>(1, i -> i))).isZero();
    }

    @Test
    void aSubscriberThatAsksForNoItemsIsToldThatThisIsItsFault() {
        for (boolean isAtOnce : new boolean[] {true, false}) {
            Collected<String> wrong = new Collected<>(isAtOnce ? 0 : 1) {
                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    super.onSubscribe(subscription);
                    if (isAtOnce) {
                        subscription.request(0);
                    }
                }

                @Override
                public void onNext(String item) {
                    begin.join().request(-1);
                }
            };
            remote.count(10).subscribe(wrong);
            assertThatThrownBy(wrong::all)
                    .hasCauseInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("expected: > 0");
        }
    }

    @Test
    void aHundredStreamsAtOnceOnOneConnectionBringAllTheirItems() throws Exception {
        try (Client one = Client.builder().eventLoops(1).connections(1).build()) {
            ServiceClient calls = one.create(ServiceClient.class, "127.0.0.1", server.port());
            List<Collected<String>> all = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                all.add(collect(calls.large(10), Integer.MAX_VALUE));
            }
            for (Collected<String> each : all) {
                assertThat(each.all()).hasSize(10);
            }
        }
    }

    /** The client makes a thousand calls at once, and begins to read when it likes. */
    @Test
    void aThousandStreamsAtOnceBringAllTheirItemsAndNoneIsRefused() throws Exception {
        int count = 1000;
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(RawPeer.preface().writeBytes(largeStreams(count, 1)));
            await().until(() -> Inside.core(server).ledger().held(Resource.ITEM_BYTES_OUT) > 0);
            peer.readPreface();
            int ended = 0;
            while (ended < count) {
                RawPeer.Frame frame = peer.readAnswer();
                assertThat(frame.type()).isNotEqualTo(Wire.ERROR);
                ended += frame.type() == Wire.REPLY ? 1 : 0;
            }
        }
    }

    @Test
    void streamsThatAlwaysHaveMoreToSendThanTheirCallerReadsKeepNoOtherFromBeginning() throws Exception {
        int count = 100;
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(RawPeer.preface().writeBytes(largeStreams(count, Integer.MAX_VALUE)));
            peer.readPreface();
            Set<Integer> begun = new HashSet<>();
            for (int frames = 0; begun.size() < count; frames++) {
                assertThat(frames).isLessThan(200_000);
                RawPeer.Frame frame = peer.readAnswer();
                assertThat(frame.type()).isNotEqualTo(Wire.ERROR);
                if (frame.type() == Wire.ITEM) {
                    begun.add(frame.id());
                }
            }
        }
    }

    /** Returns requests for streams with this many items each, and with credit for all of them. */
    private static ByteBuf largeStreams(int count, int items) {
        ByteBuf all = Unpooled.buffer();
        for (int slot = 0; slot < count; slot++) {
            int id = 1 << 16 | slot;
            ByteBuf request = RawPeer.prelude("streams", "large").writeByte(1 << 3);
            Varint.write(request, items);
            ByteBuf credit = Unpooled.buffer();
            Varint.write(credit, 1L << 62);
            all.writeBytes(RawPeer.frame(Wire.REQUEST | Wire.NAMED, id, request))
                    .writeBytes(RawPeer.frame(Wire.CREDIT, id, credit));
        }
        return all;
    }

    @Test
    void noMoreItemsAreMadeThanWereAskedFor() {
        Collected<String> collected = collect(remote.count(1000), 0);
        Flow.Subscription subscription = collected.begin.join();
        subscription.request(3);
        await().until(() -> collected.items.size() == 3);
        assertThat(remote.ping()).isEqualTo("pong");
        assertThat(service.last.made).hasValue(3);
        subscription.request(2);
        await().until(() -> collected.items.size() == 5);
        assertThat(service.last.made).hasValue(5);
        subscription.cancel();
        await().until(() -> service.last.cancelled.isDone());
    }

    @Test
    void largeItemsAreSentOneAfterTheOther() throws Exception {
        List<String> items = collect(remote.large(6), Integer.MAX_VALUE).all();
        for (int i = 0; i < 6; i++) {
            assertThat(items.get(i)).isEqualTo((i + "-").repeat(i % 2 == 0 ? 50_000 : 1));
        }
        assertThat(items).hasSize(6);
    }

    @Test
    void aHandlersErrorEndsTheStream() {
        assertThatThrownBy(() -> collect(remote.fail("no such luck"), 1).all())
                .hasCauseInstanceOf(RPCXException.class)
                .hasMessageContaining("no such luck");
    }

    @Test
    void aPublisherThatBlocksHoldsNobodyElseUp() throws Exception {
        Collected<String> collected = collect(remote.blocking(3), 10);
        assertThat(remote.ping()).isEqualTo("pong");
        assertThat(collected.items).isEmpty();
        service.free.complete(null);
        assertThat(collected.all()).containsExactly("item 0", "item 1", "item 2");
    }

    @Test
    void aPublisherThatThrowsEndsTheStream() {
        assertThatThrownBy(() -> collect(remote.refusing("not today"), 1).all())
                .hasCauseInstanceOf(RPCXException.class)
                .hasMessageContaining("not today");
    }

    private static void endsAsTooLarge(ThrowingCallable call, Made<?> stream, int limit) throws Exception {
        Throwable thrown = catchThrowable(call);
        RPCXException error = (RPCXException) (thrown instanceof RPCXException ? thrown : thrown.getCause());
        assertThat(error.code()).isEqualTo(RPCXException.Code.TOO_LARGE);
        assertThat(error.executed()).isEqualTo(RPCXException.Executed.MAYBE);
        assertThat(error).hasMessageContaining("1000").hasMessageContaining("at most " + limit);
        stream.cancelled.get(20, TimeUnit.SECONDS);
    }

    @Test
    void anItemThatIsTooLargeToBeSentIsToldAsThatAsARequestIs() throws Exception {
        Server small = Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .maxMessageBytes(100_000)
                .build()
                .start();
        try {
            ServiceClient calls = client.create(ServiceClient.class, "127.0.0.1", small.port());
            IntFunction<String> texts = i -> "x".repeat(i < 3 ? 10 : 100_050);
            Made<String> waited = new Made<>(10, texts);
            endsAsTooLarge(() -> calls.countTexts(waited).get(20, TimeUnit.SECONDS), waited, 100_000);
            Made<String> blocking = new Made<>(10, texts);
            endsAsTooLarge(() -> calls.countTextsBlocking(blocking), blocking, 100_000);
            Made<String> echoed = new Made<>(10, texts);
            endsAsTooLarge(() -> collect(calls.echo(echoed), 10).all(), echoed, 100_000);
            assertThat(calls.countTexts(new Made<>(3, texts)).get(20, TimeUnit.SECONDS))
                    .isEqualTo(3);
        } finally {
            small.stop(Duration.ofMillis(200));
        }
    }

    @Test
    void anItemThatNoMessageCanHoldIsToldAsThat() throws Exception {
        Made<String> stream = new Made<>(2, i -> "x".repeat(5_000_000));
        assertThatThrownBy(() -> remote.countTexts(stream).get(20, TimeUnit.SECONDS))
                .cause()
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.TOO_LARGE))
                .hasMessageContaining("4194304");
        stream.cancelled.get(20, TimeUnit.SECONDS);
    }

    @Test
    void aPublisherThatFailsCancelsItsCallWhateverItsExceptionSays() {
        Flow.Publisher<String> failing = subscriber -> {
            subscriber.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long items) {
                    subscriber.onError(new RPCXException(RPCXException.Code.TOO_LARGE, "of another call"));
                }

                @Override
                public void cancel() {}
            });
        };
        assertThatThrownBy(() -> remote.countTexts(failing).get(20, TimeUnit.SECONDS))
                .cause()
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.CANCELLED))
                .hasMessageContaining("of another call");
    }

    @Test
    void aPublisherThatFailsWithoutWordsCancelsItsCall() {
        Flow.Publisher<String> failing = subscriber -> {
            subscriber.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long items) {
                    subscriber.onError(new UnspeakableErrorsTest.Unspeakable());
                }

                @Override
                public void cancel() {}
            });
        };
        assertThatThrownBy(() -> remote.countTexts(failing).get(20, TimeUnit.SECONDS))
                .cause()
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.CANCELLED))
                .hasMessageContaining("Unspeakable");
    }

    @Test
    void aSubscriberThatFailsWithoutWordsEndsNoOtherCall() throws Exception {
        Collected<String> slow = new Collected<>(0);
        remote.count(3).subscribe(slow);
        Flow.Subscription beside = slow.begin.get(20, TimeUnit.SECONDS);
        CompletableFuture<Void> failed = new CompletableFuture<>();
        remote.count(3).subscribe(new Collected<String>(1) {
            @Override
            public void onNext(String item) {
                throw new IllegalStateException("no item is good");
            }

            @Override
            public void onError(Throwable thrown) {
                failed.complete(null);
                throw new UnspeakableErrorsTest.Unspeakable();
            }
        });
        failed.get(20, TimeUnit.SECONDS);
        beside.request(3);
        assertThat(slow.all()).hasSize(3);
    }

    /** A request is sent in parts from 16,379 bytes on. The subscriber requests items at once. */
    @ParameterizedTest
    @ValueSource(ints = {16_000, 17_000, 50_000, 1_000_000})
    void aStreamOfALargeRequestHasItsCredit(int chars) throws Exception {
        Collected<String> halves = new Collected<>(2);
        remote.halves("x".repeat(chars)).subscribe(halves);
        assertThat(String.join("", halves.all())).hasSize(chars);
    }

    @Test
    void aStreamGoesToTheServer() throws Exception {
        assertThat(remote.sum(new Made<>(1000, i -> i)).get(20, TimeUnit.SECONDS))
                .isEqualTo(499_500);
        assertThat(remote.sumBlocking(new Made<>(100, i -> i))).isEqualTo(4950);
    }

    @Test
    void streamsGoBothWaysAtOnce() throws Exception {
        List<String> echoed =
                collect(remote.echo(new Made<>(500, i -> "text " + i)), 3).all();
        assertThat(echoed).hasSize(500).startsWith("echo text 0").endsWith("echo text 499");
    }

    @Test
    void aLostConnectionEndsTheStreamOnBothSides() {
        Collected<String> collected = collect(remote.count(1000), 0);
        collected.begin.join().request(1);
        await().until(() -> collected.items.size() == 1);
        Inside.core(client).dropConnections();
        assertThatThrownBy(collected::all).hasCauseInstanceOf(RPCXException.class);
        await().until(() -> service.last.cancelled.isDone());
    }
}
