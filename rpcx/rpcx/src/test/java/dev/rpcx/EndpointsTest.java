package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.client.ClientAddress;
import dev.rpcx.internal.client.ClientCluster;
import dev.rpcx.internal.client.ClientConnection;
import dev.rpcx.internal.client.ClientCore;
import dev.rpcx.internal.client.Health;
import dev.rpcx.internal.io.Loops;
import dev.rpcx.internal.io.Platform;
import io.netty.util.concurrent.Ticker;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests registries whose instances come and go, registries that fail, and the choice of an instance for each call. */
@Timeout(60)
class EndpointsTest {
    /** A registry that says what the test wants. */
    private static final class Registry implements Endpoints {
        private final List<Listener> listeners = new CopyOnWriteArrayList<>();
        private List<Endpoint> now = List.of();

        @Override
        public synchronized Watch watch(Listener listener) {
            listeners.add(listener);
            listener.found(now);
            return () -> listeners.remove(listener);
        }

        synchronized void say(Endpoint... all) {
            now = List.of(all);
            listeners.forEach(listener -> listener.found(now));
        }

        void fail() {
            listeners.forEach(listener -> listener.failed(new IllegalStateException("the registry is down")));
        }
    }

    private static Map<Integer, Integer> spread(Instances.Who who, int calls, boolean sameKey) {
        Map<Integer, Integer> counts = new HashMap<>();
        for (int i = 0; i < calls; i++) {
            counts.merge(who.who(sameKey ? "same" : "key" + i), 1, Integer::sum);
        }
        return counts;
    }

    private static void awaitAll(Instances.Who who, int instances) {
        await().until(() -> spread(who, 60, false).size() == instances);
    }

    @Test
    void anEmptyOrFailingRegistryDoesNotEmptyAWorkingList() {
        Registry registry = new Registry();
        try (Instances instances = new Instances(2);
                Client client = Client.standard()) {
            Instances.Who who = client.create(Instances.Who.class, registry);
            registry.say(instances.endpoints());
            awaitAll(who, 2);
            registry.say();
            registry.fail();
            assertThat(spread(who, 100, false)).hasSize(2);
        }
    }

    @Test
    void aRegistryThatNamesInstancesWithoutEndIsTakenInPart() {
        Registry registry = new Registry();
        Endpoint[] all = new Endpoint[2 * ClientCluster.MAX_INSTANCES];
        for (int i = 0; i < all.length; i++) {
            all[i] = new Endpoint("instance" + i, 1);
        }
        try (Client client = Client.builder().inProcess().build()) {
            ClientCluster cluster = new ClientCluster(client.core(), 1, 1, Choice.LEAST_LOADED).start(registry);
            registry.say(all[all.length - 1]);
            registry.say(all);
            await().until(() -> cluster.chooser().all.length == ClientCluster.MAX_INSTANCES);
            assertThat(cluster.chooser().all)
                    .extracting(member -> member.endpoint)
                    .contains(all[all.length - 1], all[0], all[ClientCluster.MAX_INSTANCES - 2]);
            assertThat(cluster).hasToString("instance8191:1, instance0:1, instance1:1 and 4093 more");
            cluster.close();
        }
    }

    @Test
    void aNewInstanceGetsCallsAndOneThatIsTakenOutGetsNone() {
        Registry registry = new Registry();
        try (Instances instances = new Instances(3);
                Client client = Client.standard()) {
            Instances.Who who = client.create(Instances.Who.class, registry);
            registry.say(instances.endpoint(0), instances.endpoint(1));
            awaitAll(who, 2);
            long asked = System.nanoTime();
            registry.say(instances.endpoint(1), instances.endpoint(2));
            await().atMost(Duration.ofSeconds(5))
                    .pollInterval(Duration.ofMillis(1))
                    .until(() -> who.who("x") == 2);
            LongForm.figure(
                    13, "a new instance had its first call after %d ms", (System.nanoTime() - asked) / 1_000_000);
            assertThat(spread(who, 200, false)).containsOnlyKeys(1, 2);
        }
    }

    /**
     * Half of the instances in the list are away. They are next to each other in the list, as the instances of a zone
     * are. None of the other instances gets all of their calls.
     */
    @ParameterizedTest
    @EnumSource(Choice.class)
    void whatFallsToInstancesThatAreAwayIsSharedByAllOthers(Choice choice) {
        int there = 10;
        int calls = 4000;
        Registry registry = new Registry();
        try (Instances instances = new Instances(there);
                Client client = Client.builder().choice(choice).build()) {
            Instances.Who who = client.create(Instances.Who.class, registry);
            List<Endpoint> all = new ArrayList<>();
            for (int i = 0; i < there; i++) {
                // nobody listens there
                all.add(new Endpoint("127.0.0." + (20 + i), 1));
            }
            all.addAll(List.of(instances.endpoints()));
            registry.say(all.toArray(new Endpoint[0]));
            // on a ring, a few keys may not reach every instance
            await().until(() -> spread(who, calls / 10, false).size() == there);
            Map<Integer, Integer> counts = spread(who, calls, false);
            assertThat(counts).hasSize(there);
            // the shares of the instances on a ring differ, although each has 100 points there
            assertThat(counts.values())
                    .allSatisfy(count -> assertThat(count).isBetween(calls / there / 2, 2 * calls / there));
        }
    }

    /**
     * Each client begins at a random instance. Otherwise all clients of a fleet that starts would call the first one.
     */
    @Test
    void roundsOfDifferentClientsBeginAtDifferentInstances() {
        Set<Integer> first = new HashSet<>();
        try (Instances instances = new Instances(5)) {
            for (int i = 0; i < 12; i++) {
                try (Client client =
                        Client.builder().choice(Choice.WEIGHTED_ROUND_ROBIN).build()) {
                    Registry registry = new Registry();
                    registry.say(instances.endpoints());
                    ClientCluster cluster =
                            new ClientCluster(client.core(), 1, 1, Choice.WEIGHTED_ROUND_ROBIN).start(registry);
                    first.add(cluster.chooser().first(0));
                    cluster.close();
                }
            }
        }
        assertThat(first).hasSizeGreaterThan(1);
    }

    /**
     * In some of these cases, the order of a round is computed in advance. In the others, the sum of the weights is too
     * large.
     */
    @ParameterizedTest
    @CsvSource({"3000, 1000, 1000", "11, 1, 1000", "10, 999, 1000", "4, 3, 7", "300, 17, 31"})
    void roundsKeepToWeightsHoweverLargeTheirSumIs(int count, int firstWeight, int otherWeight) {
        Endpoint[] all = new Endpoint[count];
        long total = 0;
        for (int i = 0; i < count; i++) {
            all[i] = new Endpoint("instance" + i, 1, i == 0 ? firstWeight : otherWeight);
            total += all[i].weight();
        }
        try (Client client = Client.builder().inProcess().build()) {
            Registry registry = new Registry();
            registry.say(all);
            ClientCluster cluster = new ClientCluster(client.core(), 1, 1, Choice.WEIGHTED_ROUND_ROBIN).start(registry);
            await().until(() -> cluster.chooser().all.length == count);
            int calls = 200 * count;
            int[] counts = new int[count];
            for (int i = 0; i < calls; i++) {
                counts[cluster.chooser().first(0)]++;
            }
            for (int i = 0; i < count; i++) {
                double share = (double) calls * all[i].weight() / total;
                assertThat((double) counts[i]).isBetween(share - 4, share + 4);
            }
            cluster.close();
        }
    }

    @Test
    void anotherWeightIsTheSameInstanceWithItsConnectionAndItsHealth() {
        Registry registry = new Registry();
        try (Instances instances = new Instances(2);
                Client client = Client.builder()
                        .choice(Choice.WEIGHTED_ROUND_ROBIN)
                        .connections(1)
                        .build()) {
            Endpoint one = instances.endpoint(0);
            Endpoint other = instances.endpoint(1);
            registry.say(one, other);
            ClientCluster cluster = new ClientCluster(client.core(), 1, 1, Choice.WEIGHTED_ROUND_ROBIN).start(registry);
            Set<ClientConnection> connections = new HashSet<>();
            await().until(() -> {
                ClientConnection ready = cluster.ready(0);
                return ready != null && connections.add(ready) && connections.size() == 2;
            });
            ClientAddress sick = connections.stream()
                    .map(ClientConnection::address)
                    .filter(address -> address.endpoint.equals(one))
                    .findFirst()
                    .orElseThrow();
            sick.health().eject();
            for (int weight = 2; weight <= 9; weight++) {
                registry.say(new Endpoint(one.host(), one.port(), weight), other);
            }
            await().until(() -> sick.weight() == 9);
            assertThat(sick.health().isEjected()).isTrue();
            await().until(() -> !sick.health().isEjected());
            long began = System.nanoTime();
            double share = shareOf(cluster, one);
            // a trial that is not sent, like those here, is passed on to another call after a second
            long seconds = TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - began);
            assertThat(share).as("a trial").isBetween(0.01, (1 + seconds) / 100.0);
            long now = client.core().platform().ticker().nanoTime();
            sick.ended(Health.Outcome.ANSWERED, now);
            assertThat(shareOf(cluster, one)).isEqualTo(0.9);
            for (int i = 0; i < 100; i++) {
                assertThat(connections).contains(cluster.ready(0));
            }
            cluster.close();
        }
    }

    private static double shareOf(ClientCluster cluster, Endpoint endpoint) {
        int calls = 0;
        for (int i = 0; i < 100; i++) {
            ClientConnection ready = cluster.ready(0);
            if (ready != null && ClientAddress.keyOf(ready.address().endpoint).equals(ClientAddress.keyOf(endpoint))) {
                calls++;
            }
        }
        return calls / 100.0;
    }

    @Test
    void anInstanceThatIsNamedTwiceIsConnectedOnce() throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
                Client client = Client.standard()) {
            Endpoint once = new Endpoint("127.0.0.1", silent.getLocalPort(), 1);
            Endpoint twice = new Endpoint("127.0.0.1", silent.getLocalPort(), 2);
            ClientCluster cluster =
                    new ClientCluster(client.core(), 1, 1, Choice.LEAST_LOADED).start(Endpoints.of(once, twice));
            try (Socket first = silent.accept()) {
                assertThat(first.isConnected()).isTrue();
                silent.setSoTimeout(500);
                assertThatThrownBy(silent::accept).isInstanceOf(SocketTimeoutException.class);
            }
            cluster.close();
        }
    }

    @Test
    void aTryToConnectEndsWithItsInstance() throws Exception {
        Registry registry = new Registry();
        try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
                Instances instances = new Instances(1);
                Client client =
                        Client.builder().connectTimeout(Duration.ofHours(1)).build()) {
            registry.say(new Endpoint("127.0.0.1", silent.getLocalPort()));
            ClientCluster cluster = new ClientCluster(client.core(), 1, 1, Choice.LEAST_LOADED).start(registry);
            try (Socket connecting = silent.accept()) {
                registry.say(instances.endpoint(0));
                connecting.setSoTimeout(10_000);
                while (connecting.getInputStream().read() >= 0) {
                    // this skips the greeting, and waits for the end of the stream
                }
            }
            await().until(() -> cluster.ready(0) != null);
            cluster.close();
        }
    }

    @Test
    void aRegistryThatSaysSomethingElseAllTheTimeIsTakenNowAndThen() throws Exception {
        Registry registry = new Registry();
        try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
                Client client = Client.standard()) {
            Endpoint named = new Endpoint("127.0.0.1", silent.getLocalPort());
            registry.say(new Endpoint("127.0.0.1", 1));
            ClientCluster cluster = new ClientCluster(client.core(), 1, 1, Choice.LEAST_LOADED).start(registry);
            for (int i = 0; i < 10_000; i++) {
                registry.say(new Endpoint("127.0.0.1", 1 + i % 1000));
            }
            registry.say(named);
            await().until(() -> cluster.toString().equals(ClientAddress.keyOf(named)));
            silent.setSoTimeout(10_000);
            try (Socket connecting = silent.accept()) {
                assertThat(connecting.isConnected()).isTrue();
            }
            cluster.close();
        }
    }

    @Test
    void aRegistryThatFailsFromTheBeginningIsTold() {
        Registry registry = new Registry();
        try (Client client = Client.standard()) {
            Instances.Who who = client.create(Instances.Who.class, registry);
            registry.fail();
            assertThatThrownBy(() -> who.who("x")).isInstanceOfSatisfying(RPCXException.class, e -> {
                assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                assertThat(e).hasMessageContaining("the registry is down");
            });
        }
    }

    @Test
    void withoutAnyInstanceACallEndsWhenEachHasBeenTried() {
        Endpoint[] gone;
        try (Instances instances = new Instances(2)) {
            gone = instances.endpoints();
        }
        try (Client client = Client.standard()) {
            Instances.Who who = client.create(Instances.Who.class, Endpoints.of(gone));
            assertThatThrownBy(() -> who.who("x"))
                    .isInstanceOfSatisfying(
                            RPCXException.class,
                            e -> assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED));
        }
    }

    @Test
    void callsFollowTheWeights() {
        try (Instances instances = new Instances(2);
                Client client =
                        Client.builder().choice(Choice.WEIGHTED_ROUND_ROBIN).build()) {
            Endpoint one = instances.endpoint(0);
            Endpoint other = instances.endpoint(1);
            Instances.Who who = client.create(
                    Instances.Who.class,
                    Endpoints.of(new Endpoint(one.host(), one.port(), 3), new Endpoint(other.host(), other.port(), 1)));
            awaitAll(who, 2);
            assertThat(spread(who, 400, false)).isEqualTo(Map.of(0, 300, 1, 100));
        }
    }

    @Test
    void equalKeysGoToOneInstanceAndOthersAreSpread() {
        Registry registry = new Registry();
        try (Instances instances = new Instances(3);
                Client client = Client.builder().choice(Choice.CONSISTENT_HASH).build()) {
            Instances.Who who = client.create(Instances.Who.class, registry);
            registry.say(instances.endpoints());
            awaitAll(who, 3);
            assertThat(spread(who, 100, true)).hasSize(1);
            Map<String, Integer> before = new HashMap<>();
            for (int i = 0; i < 300; i++) {
                before.put("key" + i, who.who("key" + i));
            }
            int gone = before.get("key0");
            registry.say(java.util.stream.IntStream.range(0, 3)
                    .filter(i -> i != gone)
                    .mapToObj(instances::endpoint)
                    .toArray(Endpoint[]::new));
            // the keys that did not belong to the instance taken out stay where they were
            before.forEach((key, instance) -> {
                if (instance != gone) {
                    assertThat(who.who(key)).as(key).isEqualTo(instance);
                }
            });
        }
    }

    @Test
    void anInstanceThatFailsCallAfterCallIsEjected() {
        try (Instances instances = new Instances(3);
                Client client = Client.standard()) {
            ClientCluster cluster = new ClientCluster(client.core(), 1, 1, Choice.LEAST_LOADED);
            cluster.start(Endpoints.of(instances.endpoints()));
            Set<ClientAddress> seen = new HashSet<>();
            await().until(() -> {
                ClientConnection ready = cluster.ready(0);
                if (ready != null) {
                    seen.add(ready.address());
                }
                return seen.size() == 3;
            });
            ClientAddress sick = seen.iterator().next();
            for (int i = 0; i < 5; i++) {
                sick.ended(
                        Health.Outcome.of(RPCXException.refused(RPCXException.Code.OVERLOADED, "sick")),
                        client.core().platform().ticker().nanoTime());
            }
            for (int i = 0; i < 200; i++) {
                assertThat(java.util.Objects.requireNonNull(cluster.ready(0)).address())
                        .isNotSameAs(sick);
            }
            // never more than half of the instances are ejected, so the second of three stays
            ClientAddress second =
                    seen.stream().filter(a -> a != sick).findFirst().orElseThrow();
            for (int i = 0; i < 5; i++) {
                second.ended(
                        Health.Outcome.of(RPCXException.refused(RPCXException.Code.OVERLOADED, "sick")),
                        client.core().platform().ticker().nanoTime());
            }
            assertThat(second.health().isEjected()).isFalse();
            cluster.close();
        }
    }

    /** Counts how often the clock is read. Each look at an ejected instance reads it. */
    private static final class Clock implements Platform, Ticker {
        private final HandPlatform hand = new HandPlatform();
        private int reads;

        @Override
        public long nanoTime() {
            reads++;
            return hand.ticker.nanoTime();
        }

        @Override
        public long initialNanoTime() {
            return hand.ticker.initialNanoTime();
        }

        @Override
        public void sleep(long delay, TimeUnit unit) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Loops loops(int count, String name, boolean inProcess) {
            return hand.loops(count, name, inProcess);
        }

        @Override
        public Ticker ticker() {
            return this;
        }

        @Override
        public RandomGenerator random() {
            return hand.random();
        }
    }

    @Test
    void aCallThatFailsDoesNotLookAtAllInstances() {
        Clock clock = new Clock();
        Endpoint[] all = new Endpoint[1_000];
        for (int i = 0; i < all.length; i++) {
            all[i] = new Endpoint("instance" + i, 1);
        }
        ClientCore client = Client.builder().platform(clock).build().core();
        ClientCluster cluster = new ClientCluster(client, 1, 1, Choice.LEAST_LOADED).start(Endpoints.of(all));
        RPCXException sick = RPCXException.refused(RPCXException.Code.OVERLOADED, "sick");
        for (ClientAddress member : cluster.chooser().all) {
            for (int i = 0; i < 5; i++) {
                member.ended(Health.Outcome.of(sick), client.platform().ticker().nanoTime());
            }
        }
        assertThat(cluster.chooser().all)
                .filteredOn(member -> member.health().isEjected())
                .hasSize(500);
        ClientAddress last = cluster.chooser().all[999];
        clock.reads = 0;
        for (int i = 0; i < 100; i++) {
            last.ended(Health.Outcome.of(sick), client.platform().ticker().nanoTime());
        }
        assertThat(clock.reads).isLessThan(1_000);
        // the ejected instances come back, and then others are ejected
        clock.hand.ticker.advance(3, TimeUnit.SECONDS);
        for (int i = 0; i < 5; i++) {
            last.ended(Health.Outcome.of(sick), client.platform().ticker().nanoTime());
        }
        assertThat(cluster.chooser().all)
                .filteredOn(member -> member.health().isEjected())
                .containsExactly(last);
        client.end();
    }

    @Test
    void whatCannotBeAnEndpointIsRefused() {
        assertThatThrownBy(() -> new Endpoint("", 1)).hasMessageContaining("host");
        assertThatThrownBy(() -> new Endpoint("a".repeat(256), 1)).hasMessageContaining("at most 255");
        assertThatThrownBy(() -> new Endpoint("a", 0)).hasMessageContaining("1 to 65535");
        assertThatThrownBy(() -> new Endpoint("a", 1, 0)).hasMessageContaining("1 to 1000");
        assertThatThrownBy(() -> Endpoints.of()).hasMessageContaining("at least one");
        assertThatThrownBy(() -> Endpoints.dns("a", 1, Duration.ofMillis(1))).hasMessageContaining("100 ms");
        assertThatThrownBy(() -> Endpoints.srv("a..b")).hasMessageContaining("_greeter._tcp");
        try (Client classic = Client.builder().classic().build()) {
            assertThatThrownBy(() -> classic.create(Instances.Who.class, Endpoints.of(new Endpoint("a", 1))))
                    .hasMessageContaining("classic");
        }
    }
}
