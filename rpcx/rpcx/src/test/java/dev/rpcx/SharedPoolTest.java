package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.server.AdmissionLimit;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.concurrent.SubmissionPublisher;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests handlers that keep their threads of the pool. Other connections still get threads, and streams go on. */
@Timeout(60)
class SharedPoolTest {
    private static final int THREADS = 8;
    private static final int FIRST = 1 << 16;

    @RPCXServer("pool")
    @RunOn(RunOn.Place.POOL)
    static final class Service {
        final CountDownLatch release = new CountDownLatch(1);
        final AtomicInteger waiting = new AtomicInteger();
        final AtomicInteger told = new AtomicInteger();

        @Method
        String waits() throws InterruptedException {
            waiting.incrementAndGet();
            release.await();
            return "released";
        }

        @Method
        String quick() {
            return "quick";
        }

        /** Goes on until its call is cancelled, whatever interrupts it. */
        @Method
        String untilTold() {
            CountDownLatch over = new CountDownLatch(1);
            CallContext.current().orElseThrow().onCancel(over::countDown);
            waiting.incrementAndGet();
            boolean isOver = false;
            while (!isOver) {
                try {
                    over.await();
                    isOver = true;
                } catch (InterruptedException e) {
                    // only the cancel ends this wait
                }
            }
            told.incrementAndGet();
            return "told";
        }

        @Method
        int total(Flow.Publisher<Integer> items) throws ExecutionException, InterruptedException {
            waiting.incrementAndGet();
            CompletableFuture<Integer> sum = new CompletableFuture<>();
            items.subscribe(new Flow.Subscriber<>() {
                private int soFar;

                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    subscription.request(Long.MAX_VALUE);
                }

                @Override
                public void onNext(Integer item) {
                    soFar += item;
                }

                @Override
                public void onError(Throwable thrown) {
                    sum.completeExceptionally(thrown);
                }

                @Override
                public void onComplete() {
                    sum.complete(soFar);
                }
            });
            return sum.get();
        }
    }

    @RPCXClient(remoteServerName = "pool")
    interface QuickClient {
        CompletableFuture<String> quick();
    }

    @RPCXClient(remoteServerName = "pool")
    interface GreedyClient {
        CompletableFuture<String> waits();

        CompletableFuture<String> quick();
    }

    @RPCXClient(remoteServerName = "pool")
    interface StreamClient {
        CompletableFuture<Integer> total(Flow.Publisher<Integer> items);
    }

    private final Service service = new Service();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .host("127.0.0.1")
            .classic(true)
            .poolSize(THREADS)
            .build()
            .start();

    @AfterEach
    void stop() {
        service.release.countDown();
        server.stop(Duration.ofSeconds(5));
        assertThat(server.core().running()).isZero();
        assertThat(server.core().ledger().audit()).isEmpty();
    }

    /**
     * A call that waits for threads that its own connection holds says nothing of what the method can do for others.
     */
    @Test
    void callsThatWaitForTheirOwnConnectionLowerNoLimit() throws Exception {
        AdmissionLimit limit = java.util.Objects.requireNonNull(
                java.util.Objects.requireNonNull(server.core().method(MethodDictionary.key("pool", "quick")))
                        .admission());
        int most = limit.limit();
        try (Client greedy = Client.standard();
                Client other = Client.standard()) {
            GreedyClient calls = greedy.create(GreedyClient.class, "127.0.0.1", server.port());
            for (int i = 0; i < THREADS; i++) {
                calls.waits();
            }
            await().until(() -> service.waiting.get() == THREADS / 2 + 1);
            for (int wave = 0; wave < 4; wave++) {
                List<CompletableFuture<String>> late = new ArrayList<>();
                for (int i = 0; i < 100; i++) {
                    late.add(CallContext.within(Duration.ofMillis(150), calls::quick));
                }
                await().until(() -> late.stream().allMatch(CompletableFuture::isCompletedExceptionally));
                await().until(() -> server.core().running() <= THREADS);
                assertThat(limit.limit()).isEqualTo(most);
            }
            assertThat(other.create(QuickClient.class, "127.0.0.1", server.port())
                            .quick()
                            .get(5, TimeUnit.SECONDS))
                    .isEqualTo("quick");
            service.release.countDown();
        }
    }

    private static Client client(boolean isClassic) {
        return isClassic ? Client.builder().classic().build() : Client.standard();
    }

    private static void callMany(RawPeer peer, boolean isClassic, String method) throws IOException {
        ByteBuf calls = Unpooled.buffer();
        if (!isClassic) {
            calls.writeBytes(RawPeer.preface());
        }
        for (int i = 0; i < 4 * THREADS; i++) {
            calls.writeBytes(
                    isClassic
                            ? ClassicRequests.of(1 + i, "pool", method, List.of(), List.of())
                            : RawPeer.frame(Wire.REQUEST | Wire.NAMED, FIRST + i, RawPeer.prelude("pool", method)));
        }
        peer.send(calls);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void callsOfOneConnectionThatWaitLeaveThreadsToTheOthers(boolean isClassic) throws Exception {
        try (RawPeer peer = new RawPeer(server.port());
                Client client = client(isClassic)) {
            callMany(peer, isClassic, "waits");
            await().until(() -> service.waiting.get() == THREADS / 2 + 1);
            QuickClient calls = client.create(QuickClient.class, "127.0.0.1", server.port());
            for (int i = 0; i < 20; i++) {
                assertThat(calls.quick().get(20, TimeUnit.SECONDS)).isEqualTo("quick");
            }
            assertThat(service.waiting).as("its others wait").hasValue(THREADS / 2 + 1);
            service.release.countDown();
            await().until(() -> service.waiting.get() == 4 * THREADS);
        }
    }

    /** A call that waits counts as a call of its connection, and no longer counts when its caller is gone. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void callsThatWaitForAThreadEndWithTheirConnection(boolean isClassic) throws Exception {
        try (RawPeer peer = new RawPeer(server.port())) {
            callMany(peer, isClassic, "untilTold");
            await().until(() -> service.waiting.get() == THREADS / 2 + 1);
        }
        await().until(() -> server.core().running() == 0);
        assertThat(service.told).as("those that have begun").hasValue(service.waiting.get());
        await().until(() -> server.core().ledger().audit().isEmpty());
    }

    /** Each handler keeps its thread until its items have come. */
    @Test
    void asManyStreamsAsThereAreThreadsAndMoreComeToTheirEnd() throws Exception {
        List<Client> clients = new ArrayList<>();
        List<SubmissionPublisher<Integer>> publishers = new ArrayList<>();
        List<CompletableFuture<Integer>> totals = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            Client client = Client.builder().build();
            clients.add(client);
            StreamClient calls = client.create(StreamClient.class, "127.0.0.1", server.port());
            for (int call = 0; call < THREADS; call++) {
                SubmissionPublisher<Integer> items = new SubmissionPublisher<>();
                publishers.add(items);
                totals.add(calls.total(items));
            }
        }
        await().until(() -> service.waiting.get() == THREADS);
        for (SubmissionPublisher<Integer> items : publishers) {
            // a publisher whose call waits for a thread has no subscriber yet
            Thread submits = new Thread(() -> {
                await().until(items::hasSubscribers);
                for (int item = 1; item <= 3; item++) {
                    items.submit(item);
                }
                items.close();
            });
            submits.setDaemon(true);
            submits.start();
        }
        for (CompletableFuture<Integer> total : totals) {
            assertThat(total.get(30, TimeUnit.SECONDS)).isEqualTo(6);
        }
        clients.forEach(Client::close);
    }

    @Test
    void handlersThatKeepAllThreadsOfTheirConnectionAreToldThatTheirCallersAreGone() throws Exception {
        try (RawPeer peer = new RawPeer(server.port())) {
            callMany(peer, false, "untilTold");
            await().until(() -> service.waiting.get() == THREADS / 2 + 1);
            for (int i = 0; i < 4 * THREADS; i++) {
                peer.send(RawPeer.frame(Wire.CANCEL, FIRST + i, Unpooled.EMPTY_BUFFER));
            }
            await().until(() -> server.core().running() == 0);
            assertThat(service.told).as("those that have begun").hasValue(service.waiting.get());
        }
    }
}
