package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.client.ClientCluster;
import dev.rpcx.internal.discovery.SharedWatch;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Tests that a registry's code and the callers' code, which meet in a watch, do not hold each other up, or hold up
 * other watches.
 */
@Timeout(60)
class WatchesTest {
    /** Reports what the test says, and runs the test's code when a watch begins and ends. */
    private static final class Registry implements Endpoints {
        private final List<Listener> listeners = new CopyOnWriteArrayList<>();
        private Runnable begins = () -> {};
        private Runnable ends = () -> {};

        @Override
        public Watch watch(Listener listener) {
            listeners.add(listener);
            begins.run();
            return () -> {
                listeners.remove(listener);
                ends.run();
            };
        }
    }

    @RPCXClient(remoteServerName = "watched")
    interface Remote {
        CompletableFuture<String> callLater();
    }

    private final Registry registry = new Registry();
    private final AtomicBoolean free = new AtomicBoolean();
    private final List<Client> clients = new ArrayList<>();
    private final int before = SharedWatch.count();

    private Client client() {
        return client(Duration.ofSeconds(10));
    }

    /** @param maxClose how long the client waits for its end; short if something blocks that end */
    private Client client(Duration maxClose) {
        Client client = Client.builder().eventLoops(1).maxClose(maxClose).build();
        clients.add(client);
        return client;
    }

    @AfterEach
    void stop() {
        free.set(true);
        clients.forEach(Client::close);
        // clients with a short time to close may have given their watches to threads of their own
        await().until(() -> SharedWatch.count() == before);
    }

    private void fail() {
        registry.listeners.forEach(each -> each.failed(new IllegalStateException("the registry is down")));
    }

    private static void inTime(Runnable task) throws Exception {
        CompletableFuture.runAsync(task, each -> new Thread(each).start()).get(20, TimeUnit.SECONDS);
    }

    @Test
    void aCallbackThatBlocksWhenARegistryFailsHoldsUpNeitherTheRegistryNorOtherClients() throws Exception {
        Client blocked = client(Duration.ofMillis(200));
        Client other = client();
        CountDownLatch in = new CountDownLatch(1);
        blocked.create(Remote.class, registry).callLater().exceptionally(failure -> {
            in.countDown();
            // this spins, because the whole suite looks for event loops that wait
            while (!free.get()) {
                Thread.onSpinWait();
            }
            return "";
        });
        inTime(this::fail);
        assertThat(in.await(20, TimeUnit.SECONDS)).isTrue();
        inTime(() -> other.create(Remote.class, registry));
        inTime(() -> other.create(Remote.class, new Registry()));
        inTime(this::fail);
        inTime(blocked::close);
    }

    @Test
    void aCallbackMayUseClientsOfTheRegistryThatFails() throws Exception {
        Client other = client();
        CompletableFuture<String> used = client().create(Remote.class, registry)
                .callLater()
                .exceptionally(failure -> {
                    other.create(Remote.class, registry);
                    CompletableFuture<Void> third =
                            CompletableFuture.runAsync(() -> client().create(Remote.class, registry));
                    while (!third.isDone()) {
                        Thread.onSpinWait();
                    }
                    return "used";
                });
        inTime(this::fail);
        assertThat(used.get(20, TimeUnit.SECONDS)).isEqualTo("used");
    }

    @Test
    void aWatchThatBeginsSlowlyHoldsUpOnlyThoseWhoWantIt() throws Exception {
        Client client = client();
        CountDownLatch in = new CountDownLatch(1);
        registry.begins = () -> {
            in.countDown();
            while (!free.get()) {
                Thread.onSpinWait();
            }
        };
        CompletableFuture<Remote> slow = CompletableFuture.supplyAsync(() -> client.create(Remote.class, registry));
        assertThat(in.await(20, TimeUnit.SECONDS)).isTrue();
        inTime(() -> client.create(Remote.class, new Registry()));
        free.set(true);
        assertThat(slow.get(20, TimeUnit.SECONDS)).isNotNull();
    }

    @Test
    void aWatchThatCouldNotBeginMayBeginForTheNextOne() {
        registry.begins = () -> {
            throw new IllegalStateException("not yet");
        };
        Client client = client();
        assertThatThrownBy(() -> client.create(Remote.class, registry)).hasMessage("not yet");
        registry.begins = () -> {};
        registry.listeners.clear();
        client.create(Remote.class, registry);
        client.create(Remote.class, registry);
        assertThat(registry.listeners).hasSize(1);
    }

    /** The ways in which {@link Client#create} fails. */
    private enum Failure {
        A_WATCH_THAT_THROWS,
        A_WATCH_THAT_IS_NONE,
        AN_INTERFACE_THAT_IS_NO_CLIENT
    }

    /** If endpoints are equal only to themselves, each failure could keep something for as long as the client lives. */
    @ParameterizedTest
    @EnumSource(Failure.class)
    void aCreateThatFailsLeavesNothing(Failure failure) {
        Heap.assumeCollected();
        Client client = client();
        List<WeakReference<ClientCluster>> made = new ArrayList<>();
        Class<?> type = failure == Failure.AN_INTERFACE_THAT_IS_NO_CLIENT ? Object.class : Remote.class;
        for (int i = 0; i < 10; i++) {
            Endpoints failing = failing(client, failure, made);
            assertThatThrownBy(() -> client.create(type, failing)).isInstanceOf(RuntimeException.class);
        }
        assertThat(client.core().clusters).isEmpty();
        assertThat(made).hasSize(failure == Failure.AN_INTERFACE_THAT_IS_NO_CLIENT ? 0 : 10);
        await().until(() -> {
            System.gc();
            return made.stream().allMatch(each -> each.refersTo(null));
        });
        client.create(Remote.class, registry);
        assertThat(registry.listeners).hasSize(1);
    }

    @SuppressWarnings("NullAway") // code without null checks may do this
    private static Endpoints failing(Client client, Failure failure, List<WeakReference<ClientCluster>> made) {
        return listener -> {
            client.core().clusters.values().forEach(each -> made.add(new WeakReference<>(each)));
            if (failure == Failure.A_WATCH_THAT_THROWS) {
                throw new IllegalStateException("by the test");
            }
            return null;
        };
    }

    @Test
    void instancesThatAreNamedBeforeAWatchFailsAreDisconnected() {
        try (Instances instances = new Instances(1)) {
            Client client = client();
            Endpoints failing = listener -> {
                listener.found(List.of(instances.endpoints()));
                await().until(() -> !client.core().channels.isEmpty());
                throw new IllegalStateException("by the test");
            };
            assertThatThrownBy(() -> client.create(Remote.class, failing)).hasMessage("by the test");
            await().during(Duration.ofMillis(300)).until(client.core().channels::isEmpty);
            assertThat(client.core().clusters).isEmpty();
        }
    }

    /**
     * The watch of the first creator fails. Meanwhile a second creator waits to begin it, and a third has no client to
     * create.
     */
    @Test
    void aCreatorThatWaitsForAWatchThatFailsBeginsItsOwn() throws Exception {
        Client client = client();
        CountDownLatch in = new CountDownLatch(1);
        AtomicBoolean isFirst = new AtomicBoolean(true);
        registry.begins = () -> {
            if (isFirst.getAndSet(false)) {
                in.countDown();
                while (!free.get()) {
                    Thread.onSpinWait();
                }
                registry.listeners.clear();
                throw new IllegalStateException("not yet");
            }
        };
        CompletableFuture<Remote> first = CompletableFuture.supplyAsync(() -> client.create(Remote.class, registry));
        assertThat(in.await(20, TimeUnit.SECONDS)).isTrue();
        Thread waiting = new Thread(() -> client.create(Remote.class, registry));
        waiting.start();
        await().until(() -> waiting.getState() == Thread.State.BLOCKED);
        inTime(() -> assertThatThrownBy(() -> client.create(Object.class, registry))
                .isInstanceOf(IllegalArgumentException.class));
        free.set(true);
        waiting.join();
        await().atMost(Duration.ofSeconds(20)).until(first::isCompletedExceptionally);
        assertThat(registry.listeners).hasSize(1);
        assertThat(client.core().clusters).hasSize(1);
        client.close();
        assertThat(registry.listeners).isEmpty();
    }

    @Test
    void aClosedClientBeginsNoWatch() {
        Client client = client();
        client.close();
        assertThatThrownBy(() -> client.create(Remote.class, registry)).hasMessage("the client is closed");
        assertThat(registry.listeners).isEmpty();
    }

    @Test
    void aWatchThatBeginsWhileItsClientClosesEnds() {
        Client client = client();
        registry.begins = () -> CompletableFuture.runAsync(client::close).join();
        assertThatThrownBy(() -> client.create(Remote.class, registry)).hasMessage("the client is closed");
        assertThat(registry.listeners).isEmpty();
    }

    @Test
    void aClientClosesWhateverAWatchDoesWhenItEnds() throws Exception {
        List<Registry> all = new ArrayList<>();
        Client client = client(Duration.ofMillis(200));
        AtomicInteger ended = new AtomicInteger();
        for (int i = 0; i < 3; i++) {
            Registry each = new Registry();
            each.ends = () -> {
                ended.incrementAndGet();
                throw new IllegalStateException("by the test");
            };
            all.add(each);
            client.create(Remote.class, each);
        }
        registry.ends = () -> {
            while (!free.get()) {
                Thread.onSpinWait();
            }
        };
        CompletableFuture<String> call = client.create(Remote.class, registry).callLater();
        inTime(client::close);
        await().until(call::isCompletedExceptionally);
        await().until(() -> ended.get() == 3);
        assertThat(all).allSatisfy(each -> assertThat(each.listeners).isEmpty());
    }

    @Test
    void aListenerHearsTheLatestOnceAndInOrder() {
        List<String> heard = new ArrayList<>();
        Endpoints.Listener listener = new Endpoints.Listener() {
            @Override
            public void found(List<Endpoint> all) {
                heard.add(all.get(0).host());
            }

            @Override
            public void failed(Throwable why) {
                heard.add(String.valueOf(why.getMessage()));
            }
        };
        try (Endpoints.Watch watch = SharedWatch.of(registry, listener)) {
            assertThat(watch).isNotNull();
            Endpoints.Listener teller = registry.listeners.get(0);
            teller.failed(new IllegalStateException("1"));
            teller.found(List.of(new Endpoint("a", 1)));
            teller.found(List.of());
            teller.failed(new IllegalStateException("2"));
            teller.found(List.of());
            teller.failed(new IllegalStateException("3"));
            assertThat(heard).containsExactly("1", "a", "2", "3");
            try (Endpoints.Watch later = SharedWatch.of(registry, listener)) {
                assertThat(later).isNotNull();
                assertThat(heard).containsExactly("1", "a", "2", "3", "a", "3");
            }
        }
    }
}
