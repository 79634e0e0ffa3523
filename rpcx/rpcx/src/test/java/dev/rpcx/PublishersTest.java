package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.call.StreamEndListener;
import dev.rpcx.internal.call.StreamsTest.Collected;
import java.time.Duration;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests the publishers that are made from collections, streams, iterators and queues, on both sides of a call. */
@Timeout(60)
class PublishersTest {
    private static final List<Integer> THOUSAND =
            IntStream.range(0, 1000).boxed().toList();

    /** Object of a queue that is the end, and no item. */
    private static final int END = -1;

    /** Counts how often it has been closed. */
    private static final class Closed implements AutoCloseable {
        final AtomicInteger times = new AtomicInteger();

        @Override
        public void close() {
            times.incrementAndGet();
        }

        void awaitOnce() {
            await().until(() -> times.get() == 1);
        }
    }

    /** Waits for ever in {@code hasNext}, unless it is interrupted. */
    private static final class Waiting implements Iterator<Integer> {
        final CountDownLatch waits = new CountDownLatch(1);
        final CompletableFuture<Thread> interrupted = new CompletableFuture<>();

        @Override
        public boolean hasNext() {
            waits.countDown();
            try {
                new CountDownLatch(1).await();
            } catch (InterruptedException e) {
                interrupted.complete(Thread.currentThread());
            }
            throw new IllegalStateException("interrupted");
        }

        @Override
        public Integer next() {
            throw new IllegalStateException("no item");
        }
    }

    @RPCXServer("items")
    static final class Service {
        final BlockingQueue<Integer> queue = new LinkedBlockingQueue<>();
        final Closed closed = new Closed();
        final Waiting waiting = new Waiting();

        @Method
        Flow.Publisher<Integer> list() {
            return Publishers.of(THOUSAND);
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        Flow.Publisher<Integer> listOnLoop() {
            return Publishers.of(THOUSAND);
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        Flow.Publisher<Integer> listOnPool() {
            return Publishers.of(THOUSAND);
        }

        @Method
        Flow.Publisher<Integer> stream() {
            return Publishers.of(THOUSAND.stream().onClose(closed::close));
        }

        @Method
        Flow.Publisher<Integer> queue() {
            return Publishers.of(queue, item -> item == END);
        }

        @Method
        Flow.Publisher<Integer> waiting() {
            return Publishers.of(waiting, closed);
        }

        @Method
        Flow.Publisher<Integer> failing() {
            return Publishers.of(
                    THOUSAND.stream()
                            .map(item -> {
                                if (item == 500) {
                                    throw new RPCXException(RPCXException.Code.TOO_LARGE, "no more than 500");
                                }
                                return item;
                            })
                            .iterator(),
                    closed);
        }

        /** Returns the names of the callers that the code of the stream sees. */
        @Method
        Flow.Publisher<String> callers() {
            return Publishers.of(Stream.of(1, 2, 3)
                    .map(item -> CallContext.current()
                            .flatMap(CallContext::principal)
                            .orElseThrow()
                            .getName()));
        }

        @Method
        CompletableFuture<Integer> take(Flow.Publisher<Integer> items) {
            Collected<Integer> collected = new Collected<>(7);
            items.subscribe(collected);
            return collected.end.thenApply(List::size);
        }
    }

    @RPCXClient(remoteServerName = "items")
    interface ServiceClient {
        Flow.Publisher<Integer> list();

        Flow.Publisher<Integer> listOnLoop();

        Flow.Publisher<Integer> listOnPool();

        Flow.Publisher<Integer> stream();

        Flow.Publisher<Integer> queue();

        Flow.Publisher<Integer> waiting();

        Flow.Publisher<Integer> failing();

        Flow.Publisher<String> callers();

        int take(Flow.Publisher<Integer> items);
    }

    private final Service service = new Service();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .interceptor((call, next) -> {
                CallContext.current().orElseThrow().authenticate(() -> "alice");
                return next.proceed(call);
            })
            .build()
            .start();
    private final Client client = Client.standard();
    private final ServiceClient calls = client.create(ServiceClient.class, "127.0.0.1", server.port());

    @AfterEach
    void stop() {
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    private static <T> Collected<T> collect(Flow.Publisher<T> stream, int atATime) {
        Collected<T> collected = new Collected<>(atATime);
        stream.subscribe(collected);
        return collected;
    }

    @Test
    void aHandlersCollectionArrivesWholeWhereverTheHandlerRuns() throws Exception {
        for (int atATime : new int[] {1, 7, 1000, Integer.MAX_VALUE}) {
            assertThat(collect(calls.list(), atATime).all()).isEqualTo(THOUSAND);
            assertThat(collect(calls.listOnLoop(), atATime).all()).isEqualTo(THOUSAND);
            assertThat(collect(calls.listOnPool(), atATime).all()).isEqualTo(THOUSAND);
        }
    }

    @Test
    void aCallersCollectionArrivesWholeEachTime() {
        Flow.Publisher<Integer> items = Publishers.of(THOUSAND);
        assertThat(calls.take(items)).isEqualTo(1000);
        assertThat(calls.take(items)).isEqualTo(1000);
        assertThat(calls.take(Publishers.of(List.of()))).isZero();
    }

    @Test
    void aStreamIsClosedWhenItHasArrived() throws Exception {
        assertThat(collect(calls.stream(), 7).all()).isEqualTo(THOUSAND);
        service.closed.awaitOnce();
        Closed own = new Closed();
        assertThat(calls.take(Publishers.of(THOUSAND.stream().onClose(own::close))))
                .isEqualTo(1000);
        own.awaitOnce();
    }

    @Test
    void aStreamIsClosedOnceItsReaderWantsNoMore() {
        Collected<Integer> some = collect(calls.stream(), 0);
        some.begin.join().request(3);
        await().until(() -> some.items.size() == 3);
        some.begin.join().cancel();
        service.closed.awaitOnce();
        assertThat(some.items).containsExactly(0, 1, 2);
    }

    @Test
    void aQueueIsWaitedForAndEndsWhereItSaysSo() throws Exception {
        Collected<Integer> collected = collect(calls.queue(), 1);
        service.queue.addAll(List.of(1, 2));
        await().until(() -> collected.items.size() == 2);
        assertThat(collected.end).isNotDone();
        service.queue.addAll(List.of(3, END, 4));
        assertThat(collected.all()).containsExactly(1, 2, 3);

        BlockingQueue<Integer> own = new LinkedBlockingQueue<>();
        CompletableFuture<Integer> taken =
                CompletableFuture.supplyAsync(() -> calls.take(Publishers.of(own, item -> item == END)));
        own.addAll(List.of(1, 2, END));
        assertThat(taken.get(30, TimeUnit.SECONDS)).isEqualTo(2);
    }

    @Test
    void aCancelInterruptsAThreadThatWaitsForAnItem() throws Exception {
        Collected<Integer> collected = collect(calls.waiting(), 1);
        assertThat(service.waiting.waits.await(30, TimeUnit.SECONDS)).isTrue();
        collected.begin.join().cancel();
        service.waiting.interrupted.get(30, TimeUnit.SECONDS);
        service.closed.awaitOnce();
    }

    /** The event loop asks a client's publisher for items, and others need that loop meanwhile. */
    @Test
    void aCallersItemsThatHaveToBeWaitedForHoldUpNoOtherCall() throws Exception {
        Waiting waiting = new Waiting();
        Closed own = new Closed();
        try (Client one = Client.builder().eventLoops(1).connections(1).build()) {
            ServiceClient over = one.create(ServiceClient.class, "127.0.0.1", server.port());
            CompletableFuture<Integer> taken =
                    CompletableFuture.supplyAsync(() -> over.take(Publishers.of(waiting, own)));
            assertThat(waiting.waits.await(30, TimeUnit.SECONDS)).isTrue();
            assertThat(collect(over.list(), 7).all()).isEqualTo(THOUSAND);
            assertThat(taken).isNotDone();
        }
        waiting.interrupted.get(30, TimeUnit.SECONDS);
        own.awaitOnce();
    }

    @Test
    void whatReadingAnItemThrowsEndsTheStream() {
        Collected<Integer> collected = collect(calls.failing(), 7);
        assertThatThrownBy(collected::all)
                .isInstanceOf(ExecutionException.class)
                .cause()
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.TOO_LARGE))
                .hasMessage("no more than 500");
        assertThat(collected.items.size()).isLessThanOrEqualTo(500);
        service.closed.awaitOnce();
        assertThatThrownBy(() -> calls.take(Publishers.of(
                        THOUSAND.stream().map(item -> 10 / (5 - item)).iterator(), service.closed)))
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.CANCELLED))
                .hasMessageContaining("/ by zero");
    }

    @Test
    void itemsAreReadInTheContextOfTheirCall() throws Exception {
        assertThat(collect(calls.callers(), 1).all()).containsExactly("alice", "alice", "alice");
    }

    @Test
    void noMoreItemsAreReadThanAreAskedForAndOne() throws Exception {
        AtomicInteger read = new AtomicInteger();
        Collected<Integer> collected =
                collect(Publishers.of(THOUSAND.stream().peek(item -> read.incrementAndGet())), 0);
        assertThat(read).hasValue(0);
        collected.begin.join().request(3);
        await().until(() -> collected.items.size() == 3);
        await().until(() -> read.get() == 4);
        collected.begin.join().request(997);
        assertThat(collected.all()).as("ends without a further request").isEqualTo(THOUSAND);
    }

    @Test
    void aRequestForNoItemIsAnErrorOfTheSubscriber() {
        Collected<Integer> collected = collect(Publishers.of(THOUSAND), 0);
        collected.begin.join().request(0);
        assertThatThrownBy(collected::all)
                .hasCauseInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("request of 0 items (expected: > 0)");
    }

    @Test
    void aNullIsAnErrorAndNotTheEnd() {
        Iterable<Integer> nulls = Arrays.asList(1, null, 3);
        Collected<Integer> collected = collect(Publishers.of(nulls), 7);
        assertThatThrownBy(collected::all).hasMessageContaining("an item is null");
        assertThat(collected.items).containsExactly(1);
    }

    @Test
    void itemsThatCanBeReadOnceHaveOneSubscriber() throws Exception {
        Flow.Publisher<Integer> once = Publishers.of(Stream.of(1, 2));
        assertThat(collect(once, 7).all()).containsExactly(1, 2);
        assertThatThrownBy(collect(once, 7)::all).hasMessageContaining("only once (expected: one subscriber)");
    }

    @Test
    void whatCannotBeClosedAfterTheLastItemIsAnError() {
        Collected<Integer> collected = collect(
                Publishers.of(List.of(1).iterator(), () -> {
                    throw new IllegalStateException("not all was read");
                }),
                7);
        assertThatThrownBy(collected::all).hasMessageContaining("not all was read");
        assertThat(collected.items).containsExactly(1);
    }

    @Test
    void aStreamThatEndsBeforeAnybodySubscribesIsClosed() throws Exception {
        Closed own = new Closed();
        Flow.Publisher<Integer> never = Publishers.of(List.of(1).iterator(), own);
        StreamEndListener.ended(never, null);
        StreamEndListener.ended(never, null);
        assertThat(own.times).hasValue(1);
        Flow.Publisher<Integer> logged = Publishers.of(List.of(1).iterator(), own);
        assertThat(collect(logged, 7).all()).containsExactly(1);
        StreamEndListener.ended(logged, null);
        assertThat(own.times).hasValue(2);
    }

    @Test
    void aQueueWithoutItsEndIsRefused() {
        Iterable<Integer> queue = service.queue;
        assertThatThrownBy(() -> Publishers.of(queue))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("expected: Publishers.of(queue, isEnd)");
    }

    @Test
    void aWaitForAQueueThatSomebodyElseInterruptsIsAnError() {
        AtomicInteger asked = new AtomicInteger();
        BlockingQueue<Integer> interrupting = new LinkedBlockingQueue<>() {
            private static final long serialVersionUID = 1L;

            @Override
            public Integer take() throws InterruptedException {
                asked.incrementAndGet();
                throw new InterruptedException();
            }
        };
        Collected<Integer> collected = collect(Publishers.of(interrupting, item -> item == END), 1);
        assertThatThrownBy(collected::all)
                .cause()
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.CANCELLED))
                .hasMessageContaining("was interrupted");
        assertThat(asked).hasValue(1);
    }
}
