package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

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

/** A registry's code and the callers' code meet in a watch: neither holds the other up, nor other watches. */
@Timeout(60)
class WatchesTest {
    /** Tells what the test says, and does what it wants when a watch begins and ends. */
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
        Client client =
                Client.builder().eventLoops(1).maxClose(Duration.ofMillis(200)).build();
        clients.add(client);
        return client;
    }

    @AfterEach
    void stop() {
        free.set(true);
        clients.forEach(Client::close);
        assertThat(SharedWatch.count()).isEqualTo(before);
    }

    private void fail() {
        registry.listeners.forEach(each -> each.failed(new IllegalStateException("the registry is down")));
    }

    private static void inTime(Runnable task) throws Exception {
        CompletableFuture.runAsync(task, each -> new Thread(each).start()).get(20, TimeUnit.SECONDS);
    }

    @Test
    void aCallbackThatBlocksWhenARegistryFailsHoldsUpNeitherTheRegistryNorOtherClients() throws Exception {
        Client blocked = client();
        Client other = client();
        CountDownLatch in = new CountDownLatch(1);
        blocked.create(Remote.class, registry).callLater().exceptionally(failure -> {
            in.countDown();
            // spins, since a loop that waits is what the whole suite looks for
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
        Client client = client();
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
        assertThat(call).isCompletedExceptionally();
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
