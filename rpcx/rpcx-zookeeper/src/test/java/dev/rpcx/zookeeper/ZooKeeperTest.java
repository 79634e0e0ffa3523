package dev.rpcx.zookeeper;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests with the real ZooKeeper, which is killed and started again under load. */
@Timeout(180)
class ZooKeeperTest {
    private static final String PATH = "/rpcx/services/counted";
    private static final int CALLERS = 4;

    @RPCXServer("counted")
    static final class Counted {
        final AtomicLong calls = new AtomicLong();

        @Method
        long count() {
            return calls.incrementAndGet();
        }
    }

    @RPCXClient(remoteServerName = "counted")
    interface Counting {
        long count();
    }

    private static final class Instance implements AutoCloseable {
        final Counted counted = new Counted();
        final Server server = Server.builder(RegistryServer.registry(counted))
                .host("127.0.0.1")
                .build()
                .start();
        final ZooKeeperRegistration registration;

        Instance(String servers) {
            registration = ZooKeeperRegistration.of(servers, PATH, new Endpoint("127.0.0.1", server.port()));
        }

        @Override
        public void close() {
            registration.close();
            server.stop();
        }
    }

    @TempDir
    Path folder;

    private final AtomicBoolean stop = new AtomicBoolean();
    private final AtomicLong calls = new AtomicLong();
    private final ConcurrentLinkedQueue<RuntimeException> failures = new ConcurrentLinkedQueue<>();

    /** Writes a figure that {@code rpcx/reliability} reads and records. */
    private static void figure(String text) throws IOException {
        System.out.println("trust 13\t" + text);
        Files.writeString(
                Path.of("target", "reliability.txt"),
                "13\t" + text + "\n",
                StandardOpenOption.CREATE,
                StandardOpenOption.APPEND);
    }

    private void load(Counting counting) {
        while (!stop.get()) {
            try {
                counting.count();
                calls.incrementAndGet();
            } catch (RuntimeException e) {
                failures.add(e);
            }
        }
    }

    private static void awaitCalls(Instance instance) {
        long before = instance.counted.calls.get();
        await().atMost(Duration.ofSeconds(30))
                .pollInterval(Duration.ofMillis(5))
                .until(() -> instance.counted.calls.get() > before + 20);
    }

    @Test
    void callsGoOnWhileTheRegistryIsKilledAndInstancesComeAndGo() throws Exception {
        List<Thread> callers = new ArrayList<>();
        try (ZooKeeperProcess zooKeeper = new ZooKeeperProcess(folder);
                Client client = Client.standard();
                Instance first = new Instance(zooKeeper.servers());
                Instance second = new Instance(zooKeeper.servers())) {
            first.registration.registered().get(30, TimeUnit.SECONDS);
            Counting counting = client.create(Counting.class, ZooKeeperEndpoints.of(zooKeeper.servers(), PATH));
            for (int i = 0; i < CALLERS; i++) {
                Thread caller = new Thread(() -> load(counting));
                callers.add(caller);
                caller.start();
            }
            awaitCalls(first);
            awaitCalls(second);
            zooKeeper.kill();
            long before = calls.get();
            awaitCalls(first);
            awaitCalls(second);
            // an instance that comes while the registry is away is found when the registry is back
            try (Instance third = new Instance(zooKeeper.servers())) {
                awaitCalls(first);
                zooKeeper.start();
                long began = System.nanoTime();
                third.registration.registered().get(30, TimeUnit.SECONDS);
                long registered = System.nanoTime();
                awaitCalls(third);
                figure(String.format(
                        "ZooKeeper killed with -9 under load, %d calls while it was away; back after its start: a new instance registered after %d ms, called %d ms later; failed calls: %d",
                        calls.get() - before,
                        TimeUnit.NANOSECONDS.toMillis(registered - began),
                        TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - registered),
                        failures.size()));
                awaitCalls(first);
                awaitCalls(second);
            }
            awaitCalls(first);
            stop.set(true);
            for (Thread caller : callers) {
                caller.join();
            }
            assertThat(failures).isEmpty();
        } finally {
            stop.set(true);
        }
    }

    /** Returns a reference to the last list that a client would get. */
    private static AtomicReference<List<Endpoint>> watching(
            ZooKeeperEndpoints endpoints, List<Endpoints.Watch> watches) {
        AtomicReference<List<Endpoint>> last = new AtomicReference<>(List.of());
        watches.add(endpoints.watch(new Endpoints.Listener() {
            @Override
            public void found(List<Endpoint> all) {
                last.set(all);
            }

            @Override
            public void failed(Throwable why) {}
        }));
        return last;
    }

    @Test
    void twoProcessesOfOneAddressLeaveEachOthersNodesAlone() throws Exception {
        List<Endpoints.Watch> watches = new ArrayList<>();
        Endpoint address = new Endpoint("10.0.0.5", 9000);
        Endpoint marker = new Endpoint("10.0.0.6", 9000);
        try (ZooKeeperProcess zooKeeper = new ZooKeeperProcess(folder);
                ZooKeeperRegistration one = ZooKeeperRegistration.of(zooKeeper.servers(), PATH, address)) {
            one.registered().get(30, TimeUnit.SECONDS);
            AtomicReference<List<Endpoint>> found = watching(ZooKeeperEndpoints.of(zooKeeper.servers(), PATH), watches);
            try (ZooKeeperRegistration other =
                    ZooKeeperRegistration.of(zooKeeper.servers(), PATH, new Endpoint("10.0.0.5", 9000, 7))) {
                other.registered().get(30, TimeUnit.SECONDS);
                // one address is one instance, however many nodes it has
                await().untilAsserted(() -> assertThat(found.get()).containsExactly(new Endpoint("10.0.0.5", 9000, 7)));
            }
            try (ZooKeeperRegistration third = ZooKeeperRegistration.of(zooKeeper.servers(), PATH, address)) {
                third.registered().get(30, TimeUnit.SECONDS);
            }
            // if the third had taken the address with it, that would show together with what comes after it
            try (ZooKeeperRegistration last = ZooKeeperRegistration.of(zooKeeper.servers(), PATH, marker)) {
                last.registered().get(30, TimeUnit.SECONDS);
                await().until(() -> found.get().contains(marker));
                await().untilAsserted(() -> assertThat(found.get()).containsExactlyInAnyOrder(address, marker));
            }
        } finally {
            watches.forEach(Endpoints.Watch::close);
        }
    }

    @Test
    void anInstanceThatIsWrittenOverAndTakenAwayComesBack() throws Exception {
        try (ZooKeeperProcess zooKeeper = new ZooKeeperProcess(folder);
                ZooKeeperRegistration registration =
                        ZooKeeperRegistration.of(zooKeeper.servers(), PATH, new Endpoint("10.0.0.5", 9000))) {
            registration.registered().get(30, TimeUnit.SECONDS);
            ZooKeeper operator = session(zooKeeper.servers());
            try {
                String node = PATH + "/" + operator.getChildren(PATH, false).get(0);
                operator.setData(node, "a note".getBytes(StandardCharsets.UTF_8), -1);
                operator.delete(node, -1);
                await().until(() -> operator.exists(node, false) != null);
            } finally {
                operator.close();
            }
        }
    }

    private static ZooKeeper session(String servers) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper session = new ZooKeeper(servers, 10_000, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        assertThat(connected.await(30, TimeUnit.SECONDS)).isTrue();
        return session;
    }

    @Test
    void withAnIdentityNobodyElseChangesWhatIsRegistered() throws Exception {
        List<Endpoints.Watch> watches = new ArrayList<>();
        Endpoint address = new Endpoint("10.0.0.5", 9000);
        try (ZooKeeperProcess zooKeeper = new ZooKeeperProcess(folder);
                ZooKeeperRegistration ours = ZooKeeperRegistration.of(
                        zooKeeper.servers(), PATH, address, ZooKeeperAccess.digest("counted", "a secret"))) {
            ours.registered().get(30, TimeUnit.SECONDS);
            ZooKeeper stranger = session(zooKeeper.servers());
            try {
                List<String> nodes = stranger.getChildren(PATH, false);
                assertThat(nodes).hasSize(1);
                assertThatThrownBy(() -> stranger.delete(PATH + "/" + nodes.get(0), -1))
                        .isInstanceOf(KeeperException.NoAuthException.class);
                assertThatThrownBy(() -> stranger.create(
                                PATH + "/10.6.6.6:9000",
                                new byte[0],
                                ZooDefs.Ids.OPEN_ACL_UNSAFE,
                                CreateMode.EPHEMERAL))
                        .isInstanceOf(KeeperException.NoAuthException.class);
            } finally {
                stranger.close();
            }
            // the registration reports this, so that nobody waits in vain
            try (ZooKeeperRegistration strangers = ZooKeeperRegistration.of(
                    zooKeeper.servers(), PATH, address, ZooKeeperAccess.digest("other", "a secret"))) {
                assertThatThrownBy(() -> strangers.registered().get(30, TimeUnit.SECONDS))
                        .hasCauseInstanceOf(KeeperException.NoAuthException.class);
            }
            AtomicReference<List<Endpoint>> found = watching(ZooKeeperEndpoints.of(zooKeeper.servers(), PATH), watches);
            await().untilAsserted(() -> assertThat(found.get()).containsExactly(address));
            try (ZooKeeperRegistration another = ZooKeeperRegistration.of(
                    zooKeeper.servers(),
                    PATH,
                    new Endpoint("10.0.0.6", 9000),
                    ZooKeeperAccess.digest("counted", "a secret"))) {
                another.registered().get(30, TimeUnit.SECONDS);
                await().untilAsserted(() -> assertThat(found.get()).hasSize(2));
            }
        } finally {
            watches.forEach(Endpoints.Watch::close);
        }
    }

    @Test
    void nodesNameTheirInstance() {
        for (Endpoint endpoint : List.of(new Endpoint("10.0.0.5", 9000), new Endpoint("::1", 9000, 7))) {
            assertThat(InstanceNode.read(InstanceNode.name(endpoint, "1-2"))).isEqualTo(endpoint);
        }
        // versions before this one name a node like this
        assertThat(InstanceNode.read("10.0.0.5:9000#7")).isEqualTo(new Endpoint("10.0.0.5", 9000, 7));
        assertThat(InstanceNode.read("lock-0000000001")).isNull();
        assertThat(InstanceNode.read("host:port")).isNull();
        assertThat(InstanceNode.read("")).isNull();
        assertThatThrownBy(() -> ZooKeeperEndpoints.of("localhost:2181", "greeter"))
                .hasMessageContaining("absolute");
        assertThat(ZooKeeperEndpoints.of("a:1", "/b")).isEqualTo(ZooKeeperEndpoints.of("a:1", "/b"));
    }

    @Test
    void aGoodLoginIsNoFailureAndARefusedOneIsTriedAgain() throws Exception {
        ConcurrentLinkedQueue<ZooKeeper> connected = new ConcurrentLinkedQueue<>();
        ConcurrentLinkedQueue<Throwable> failed = new ConcurrentLinkedQueue<>();
        try (ZooKeeperProcess zooKeeper = new ZooKeeperProcess(folder);
                ZooKeeperSession session = new ZooKeeperSession(
                        zooKeeper.servers(), ZooKeeperAccess.open(), connected::add, failed::add)) {
            await().atMost(Duration.ofSeconds(30)).until(() -> !connected.isEmpty());
            failed.clear();
            // ZooKeeper's client reports a login and its failure like this
            session.stateChanged(
                    new WatchedEvent(Watcher.Event.EventType.None, Watcher.Event.KeeperState.SaslAuthenticated, null));
            assertThat(failed).isEmpty();
            session.stateChanged(
                    new WatchedEvent(Watcher.Event.EventType.None, Watcher.Event.KeeperState.AuthFailed, null));
            assertThat(failed).isNotEmpty();
            await().atMost(Duration.ofSeconds(30))
                    .until(() -> connected.stream().distinct().count() == 2);
            failed.clear();
            // the client reports this where its login by SASL could not begin
            session.stateChanged(new WatchedEvent(Watcher.Event.EventType.None, null, null));
            assertThat(failed).anySatisfy(why -> assertThat(why).hasMessageContaining("AuthFailed"));
            await().atMost(Duration.ofSeconds(30))
                    .until(() -> connected.stream().distinct().count() == 3);
        }
    }
}
