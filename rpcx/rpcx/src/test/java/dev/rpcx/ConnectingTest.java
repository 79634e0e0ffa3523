package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.client.AnswerTimes;
import dev.rpcx.internal.client.CircuitBreaker;
import dev.rpcx.internal.client.ClientAddress;
import dev.rpcx.internal.client.ClientCluster;
import dev.rpcx.internal.client.ClientConnection;
import dev.rpcx.internal.client.ClientCore;
import dev.rpcx.internal.client.ConnectThrottle;
import dev.rpcx.internal.wire.ClassicWire;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests how often a client connects to servers that do not keep its connections. */
@Timeout(60)
class ConnectingTest {
    private static final AnswerTimes TIMES = new AnswerTimes(TimeUnit.SECONDS.toNanos(1));
    private static final int STEP_MILLIS = 5;

    @RPCXClient(remoteServerName = "there")
    interface Remote {
        CompletableFuture<String> echo(String text);

        @Method("echo")
        String echoNow(String text);

        @Method(value = "echo", timeoutMillis = 3_600_000)
        CompletableFuture<String> echoPatiently(String text);
    }

    private final HandPlatform hand = new HandPlatform();
    private final List<Client> clients = new ArrayList<>();

    @AfterEach
    void stop() {
        clients.forEach(client -> client.core().end());
        for (EmbeddedChannel channel : List.copyOf(hand.opened)) {
            hand.settle(channel);
            channel.close();
            channel.releaseOutbound();
        }
    }

    private Client client(int connections) {
        Client client = builder().connections(connections).build();
        clients.add(client);
        return client;
    }

    private Client.Builder builder() {
        return Client.builder().platform(hand).eventLoops(1).connectTimeout(Duration.ofSeconds(3));
    }

    private void pass(int millis) {
        hand.ticker.advance(millis, TimeUnit.MILLISECONDS);
        for (EmbeddedChannel channel : List.copyOf(hand.opened)) {
            hand.settle(channel);
        }
    }

    /** Lets a server say that it publishes nothing. */
    private void greet(EmbeddedChannel channel) {
        hand.settle(channel);
        ByteBuf said = RawPeer.preface();
        said.writeBytes(RawPeer.frame(Wire.DICTIONARY, 0, Unpooled.EMPTY_BUFFER));
        byte[] all = ByteBufUtil.getBytes(said);
        hand.read(channel, all, 0, all.length);
    }

    private void end(EmbeddedChannel channel) {
        channel.close();
        hand.settle(channel);
        channel.releaseOutbound();
    }

    @Test
    void anInstanceThatGreetsAndEndsEachConnectionIsConnectedToOnceASecond() {
        client(1).create(Remote.class, Endpoints.of(new Endpoint("hasty", 1)));
        for (int millis = 0, served = 0; millis < 10_000; millis += STEP_MILLIS) {
            while (served < hand.opened.size()) {
                EmbeddedChannel channel = hand.opened.get(served++);
                greet(channel);
                end(channel);
            }
            pass(STEP_MILLIS);
        }
        // there are seven pauses of 10 ms to 640 ms, and then pauses of 0.5 s to 1 s
        assertThat(hand.opened.size()).isBetween(15, 27);
    }

    @Test
    void aServerOfTheClassicWireThatEndsEachConnectionIsLeftAloneForLongerAndLonger() {
        Client client = builder().classic().build();
        clients.add(client);
        Remote remote = client.create(Remote.class, "hasty", 1);
        List<CompletableFuture<String>> calls = new ArrayList<>();
        for (int millis = 0, served = 0; millis < 1_000; millis += STEP_MILLIS) {
            calls.add(remote.echo("x"));
            while (served < hand.opened.size()) {
                EmbeddedChannel channel = hand.opened.get(served++);
                hand.settle(channel);
                end(channel);
            }
            pass(STEP_MILLIS);
        }
        assertThat(hand.opened.size()).isBetween(4, 9);
        pass(10_000);
        assertThat(calls).allSatisfy(call -> assertThat(call).isDone());
    }

    /** Says of a call that it is unavailable and was not executed, as a server that stops does. */
    private void refuseClassic(EmbeddedChannel channel) {
        hand.settle(channel);
        ByteBuf said = Unpooled.wrappedBuffer(HandPlatform.written(channel));
        if (said.isReadable()) {
            byte[] refusal = ClassicWire.reply(
                    ClassicWire.readRequest(said.readSlice(said.readInt())).id(),
                    null,
                    RPCXException.refused(RPCXException.Code.UNAVAILABLE, "not now"));
            hand.read(channel, refusal, 0, refusal.length);
        }
    }

    /** An interceptor of the server may refuse some calls in this way, while the other calls go on. */
    @Test
    void callsThatAServerOfTheClassicWireRefusesOneByOneAreAllSent() {
        Client client = builder().classic().build();
        clients.add(client);
        Remote remote = client.create(Remote.class, "picky", 1);
        int seconds = 5;
        for (int i = 0; i < seconds * 20; i++) {
            CompletableFuture<String> call = remote.echo("x");
            refuseClassic(hand.opened.get(hand.opened.size() - 1));
            assertThat(call).isCompletedExceptionally();
            assertThatThrownBy(call::join).hasMessageContaining("not now");
            pass(50);
        }
        // a server that refuses so may be stopping, and the next connection shows whether it is
        assertThat(hand.opened).hasSizeBetween(2, seconds + 1);
    }

    @Test
    void classicConnectionsThatDrainWithCallsInFlightAreBounded() {
        Client client = builder().classic().build();
        clients.add(client);
        Remote remote = client.create(Remote.class, "picky", 1);
        List<CompletableFuture<String>> calls = new ArrayList<>();
        int rounds = 12;
        for (int i = 0; i < rounds; i++) {
            calls.add(remote.echoPatiently("x"));
            pass(0);
            EmbeddedChannel newest = hand.opened.get(hand.opened.size() - 1);
            assertThat(HandPlatform.written(newest)).isNotEmpty();
            pass(1_500);
            CompletableFuture<String> refused = remote.echo("x");
            refuseClassic(newest);
            assertThat(refused).isCompletedExceptionally();
        }
        // four connections drain, and one stays in use; no call in flight ends because of that
        assertThat(hand.opened).hasSize(5).allMatch(EmbeddedChannel::isActive);
        assertThat(calls).noneMatch(CompletableFuture::isDone);
        end(hand.opened.get(1));
        CompletableFuture<String> next = remote.echo("x");
        pass(0);
        assertThat(hand.opened).as("there is room for one more").hasSize(6);
        assertThat(next).isNotDone();
    }

    @Test
    void callsToAServerThatGreetsAndEndsEachConnectionSeldomMakeAConnection() throws Exception {
        AtomicInteger accepted = new AtomicInteger();
        try (RawServer server = new RawServer();
                Client client = Client.builder().eventLoops(1).connections(1, 1).build()) {
            Thread greeting = new Thread(() -> {
                try {
                    while (true) {
                        RawServer.Peer peer = server.accept(100);
                        accepted.incrementAndGet();
                        peer.close();
                    }
                } catch (IOException closed) {
                    // the test is over
                }
            });
            greeting.setDaemon(true);
            greeting.start();
            Remote remote = client.create(Remote.class, "127.0.0.1", server.port());
            for (int i = 0; i < 20; i++) {
                assertThatThrownBy(() -> remote.echoNow("x")).isInstanceOf(RPCXException.class);
            }
        }
        assertThat(accepted.get()).isLessThanOrEqualTo(15);
    }

    /** Runs a task on a thread that uses the other one of two connections than this thread. */
    private static CompletableFuture<@Nullable Object> onOther(Callable<? extends @Nullable Object> task) {
        CompletableFuture<@Nullable Object> result = new CompletableFuture<>();
        Thread thread;
        do {
            thread = new Thread(() -> {
                try {
                    result.complete(task.call());
                } catch (Throwable e) {
                    result.completeExceptionally(e);
                }
            });
        } while ((thread.getId() - Thread.currentThread().getId()) % 2 == 0);
        thread.setDaemon(true);
        thread.start();
        return result;
    }

    private static ClientConnection connection(EmbeddedChannel channel) {
        return Objects.requireNonNull(channel.pipeline().get(ClientConnection.class));
    }

    @Test
    void aThreadWhoseOwnConnectionIsNotThereUsesAnotherWhileItsOwnIsMadeAnew() throws Exception {
        ClientAddress address = new ClientAddress(client(2).core(), new Endpoint("strict", 1), 2, 2);
        address.connect(0);
        greet(hand.opened.get(0));
        ClientConnection first = connection(hand.opened.get(0));
        assertThat(onOther(address::ready).get(20, TimeUnit.SECONDS)).isSameAs(first);
        assertThat(hand.opened).hasSize(2);
        end(hand.opened.get(1));
        assertThat(onOther(address::ready).get(20, TimeUnit.SECONDS)).isSameAs(first);
        assertThat(hand.opened).as("the server is left alone").hasSize(2);
        pass(100);
        assertThat(onOther(address::ready).get(20, TimeUnit.SECONDS)).isSameAs(first);
        assertThat(hand.opened).hasSize(3);
        greet(hand.opened.get(2));
        assertThat(onOther(address::ready).get(20, TimeUnit.SECONDS)).isSameAs(connection(hand.opened.get(2)));
        assertThat(address.ready()).isSameAs(first);
    }

    @Test
    void callsThatWaitForAConnectionWhichCannotBeMadeTakeAnother() throws Exception {
        ClientAddress address = new ClientAddress(client(2).core(), new Endpoint("strict", 1), 2, 2);
        long late = hand.ticker.nanoTime() + TimeUnit.MINUTES.toNanos(1);
        AtomicReference<@Nullable Thread> blocked = new AtomicReference<>();
        CompletableFuture<@Nullable Object> blocking = onOther(() -> {
            blocked.set(Thread.currentThread());
            return address.await(0, late, TIMES, CircuitBreaker.PERMITTED);
        });
        await().until(() -> {
            Thread thread = blocked.get();
            return thread != null && thread.getState() == Thread.State.TIMED_WAITING;
        });
        CompletableFuture<@Nullable ClientConnection> later = new CompletableFuture<>();
        onOther(() -> address.await(
                        0, late, TIMES, CircuitBreaker.PERMITTED, (connected, failure) -> later.complete(connected)))
                .get(20, TimeUnit.SECONDS);
        address.connect(0);
        assertThat(hand.opened).hasSize(2);
        greet(hand.opened.get(1));
        end(hand.opened.get(0));
        assertThat(blocking.get(20, TimeUnit.SECONDS)).isSameAs(connection(hand.opened.get(1)));
        assertThat(later.get(20, TimeUnit.SECONDS)).isSameAs(connection(hand.opened.get(1)));
    }

    @Test
    void callsThatWaitForTheirOwnConnectionTakeAnotherOneThatComesBefore() throws Exception {
        ClientAddress address = new ClientAddress(client(2).core(), new Endpoint("strict", 1), 2, 2);
        long late = hand.ticker.nanoTime() + TimeUnit.MINUTES.toNanos(1);
        CompletableFuture<@Nullable ClientConnection> later = new CompletableFuture<>();
        onOther(() -> address.await(
                        0, late, TIMES, CircuitBreaker.PERMITTED, (connected, failure) -> later.complete(connected)))
                .get(20, TimeUnit.SECONDS);
        address.connect(0);
        assertThat(hand.opened).hasSize(2);
        assertThat(later).isNotDone();
        greet(hand.opened.get(1));
        assertThat(later).isCompletedWithValue(connection(hand.opened.get(1)));
        assertThat(hand.opened.get(0).isOpen()).as("still connecting").isTrue();
    }

    /** Otherwise one event loop would look at all instances for each call, each second. */
    @Test
    void whileNoInstanceIsThereNoInstanceIsLookedForByEachCallThatWaits() {
        Client client = client(1);
        Remote remote = client.create(Remote.class, Endpoints.of(instances(100)));
        ClientCluster cluster = client.core().clusters.values().iterator().next();
        pass(0);
        for (int i = 0; i < 1_000; i++) {
            remote.echoPatiently("x");
        }
        int before = hand.randoms;
        pass(1_000);
        assertThat(cluster.waiting()).isEqualTo(1_000);
        assertThat(hand.randoms - before).isLessThan(100);
    }

    @Test
    void manyCallsThatWaitForOneOfManyInstancesAreServedByManyTasks() {
        Client client = client(1);
        Remote remote = client.create(Remote.class, Endpoints.of(instances(ClientCluster.MAX_INSTANCES)));
        ClientCluster cluster = client.core().clusters.values().iterator().next();
        pass(0);
        int calls = 200;
        for (int i = 0; i < calls; i++) {
            remote.echoPatiently("x");
        }
        greet(hand.opened.get(0));
        int before = hand.tasks;
        pass(20);
        assertThat(cluster.waiting()).isZero();
        int atOnce = ClientCluster.MAX_LOOKS_AT_ONCE / ClientCluster.MAX_INSTANCES;
        assertThat(hand.tasks - before).isGreaterThanOrEqualTo(calls / atOnce - 1);
    }

    @Test
    void aServiceIsServedByWhicheverConnectionOfItsInstanceStands() {
        Client client = client(2);
        for (int refused = 0; refused < 2; refused++) {
            int before = hand.opened.size();
            Remote remote = client.create(Remote.class, Endpoints.of(new Endpoint("strict" + refused, 1)));
            CompletableFuture<String> call = remote.echo("x");
            assertThat(hand.opened).hasSize(before + 2);
            greet(hand.opened.get(before + 1 - refused));
            for (int i = 0, at = before + refused; i < 20; i++, at = hand.opened.size() - 1) {
                end(hand.opened.get(at));
                pass(100);
                assertThat(call).isNotDone();
            }
            EmbeddedChannel stands = hand.opened.get(before + 1 - refused);
            assertThat(connection(stands).load()).isEqualTo(1);
            assertThat(remote.echo("y")).isNotDone();
            hand.settle(stands);
            assertThat(connection(stands).load()).isEqualTo(2);
        }
    }

    /** A registry that says whatever a test has it say. */
    private static final class Said implements Endpoints {
        private @Nullable Listener listener;

        @Override
        public Watch watch(Listener told) {
            listener = told;
            return () -> {};
        }

        void say(List<Endpoint> all) {
            Objects.requireNonNull(listener).found(all);
        }
    }

    private static List<Endpoint> endpoints(String name, int count) {
        List<Endpoint> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            all.add(new Endpoint(name + i, 1));
        }
        return all;
    }

    private long open() {
        return hand.opened.stream().filter(EmbeddedChannel::isOpen).count();
    }

    @Test
    void aRegistryThatNamesOthersAllTheTimeMakesAClientConnectABoundedNumberOfTimesASecond() {
        Said said = new Said();
        Client client = client(1);
        client.create(Remote.class, said);
        for (int list = 0; list < 10 && hand.opened.size() < 10_000; list++) {
            said.say(endpoints("list" + list + "-", ClientCluster.MAX_INSTANCES));
            pass(200);
            if (list % 2 == 0) {
                // connections that are made or refused make room for the next ones
                List.copyOf(hand.opened).stream()
                        .filter(EmbeddedChannel::isOpen)
                        .forEach(this::end);
            }
        }
        assertThat(hand.opened.size()).isBetween(500, 1_000);
        said.say(endpoints("last", 1));
        pass(200);
        ClientCluster cluster = client.core().clusters.values().iterator().next();
        assertThat(cluster.connectThrottle(false).waiting()).isZero();
    }

    @Test
    void ofThousandsOfInstancesThatDoNotAnswerSomeAreConnectedToAtOnceAndAllInTheEnd() {
        Said said = new Said();
        client(1).create(Remote.class, said);
        said.say(endpoints("silent", ClientCluster.MAX_INSTANCES));
        for (int millis = 0; millis < 10_000; millis += 100) {
            assertThat(open()).isBetween(1L, (long) ConnectThrottle.MAX_AT_ONCE);
            pass(100);
        }
        assertThat(hand.opened).hasSizeGreaterThan(3 * ConnectThrottle.MAX_AT_ONCE);
    }

    @Test
    void aThousandInstancesAreAllConnectedTo() {
        Said said = new Said();
        Client client = client(1);
        client.create(Remote.class, said);
        said.say(endpoints("good", 1_000));
        for (int millis = 0, served = 0; millis < 5_000; millis += 100) {
            while (served < hand.opened.size()) {
                greet(hand.opened.get(served++));
            }
            pass(100);
        }
        assertThat(hand.opened).hasSize(1_000);
        ClientAddress[] all = client.core().clusters.values().iterator().next().chooser().all;
        assertThat(List.of(all))
                .allSatisfy(address -> assertThat(address.ready()).isNotNull());
    }

    private List<CompletableFuture<String>> callsOf(Remote remote, int count) {
        List<CompletableFuture<String>> calls = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            calls.add(remote.echo("x"));
        }
        return calls;
    }

    private static Endpoint[] instances(int count) {
        Endpoint[] all = new Endpoint[count];
        for (int i = 0; i < count; i++) {
            all[i] = new Endpoint("instance" + i, 1);
        }
        return all;
    }

    @Test
    void callsThatWaitAtTheBeginAreSharedByTheInstancesThatConnect() {
        Client client = client(1);
        Remote remote = client.create(Remote.class, Endpoints.of(instances(4)));
        ClientCluster cluster = client.core().clusters.values().iterator().next();
        pass(0);
        assertThat(callsOf(remote, 400)).noneMatch(CompletableFuture::isDone);
        assertThat(cluster.waiting()).isEqualTo(400);
        for (int there = 1; there <= 4; there++) {
            greet(hand.opened.get(there - 1));
            assertThat(cluster.waiting()).as("with %d", there).isEqualTo(400 - there * 100);
        }
        assertThat(cluster.chooser().all)
                .allSatisfy(each -> assertThat(each.load()).isBetween(25, 200));
    }

    @Test
    void whoeverIsLateIsWaitedForNoLongerThanAMoment() {
        Client client = client(1);
        Remote remote = client.create(Remote.class, Endpoints.of(instances(2)));
        ClientCluster cluster = client.core().clusters.values().iterator().next();
        pass(0);
        callsOf(remote, 11);
        greet(hand.opened.get(0));
        assertThat(cluster.waiting()).isEqualTo(5);
        pass(20);
        assertThat(cluster.waiting()).isZero();
    }

    /** A single call is not divided among instances, and an instance that has failed is not about to come. */
    @Test
    void noCallWaitsForAnInstanceThatIsNotAboutToCome() {
        Client client = client(1);
        Remote remote = client.create(Remote.class, Endpoints.of(instances(2)));
        ClientCluster cluster = client.core().clusters.values().iterator().next();
        pass(0);
        callsOf(remote, 1);
        greet(hand.opened.get(0));
        assertThat(cluster.waiting()).isZero();
        Client other = client(1);
        int before = hand.opened.size();
        Remote others = other.create(Remote.class, Endpoints.of(instances(2)));
        ClientCluster failing = other.core().clusters.values().iterator().next();
        pass(0);
        callsOf(others, 10);
        end(hand.opened.get(before));
        greet(hand.opened.get(before + 1));
        assertThat(failing.waiting()).isZero();
    }

    @Test
    void anInstanceThatIsKnownDoesNotWaitBehindThoseThatARegistryNames() {
        Said said = new Said();
        client(1).create(Remote.class, said);
        List<Endpoint> all = endpoints("good", 1);
        said.say(all);
        greet(hand.opened.get(0));
        ClientAddress good = connection(hand.opened.get(0)).address();
        pass(2_000);
        all.addAll(endpoints("silent", ClientCluster.MAX_INSTANCES - 1));
        said.say(all);
        pass(200);
        end(hand.opened.get(0));
        for (int refused = 0; refused < 5; refused++) {
            int before = hand.opened.size();
            pass(1_000);
            List<EmbeddedChannel> again = List.copyOf(hand.opened.subList(before, hand.opened.size())).stream()
                    .filter(channel -> channel.isOpen() && connection(channel).address() == good)
                    .toList();
            assertThat(again).hasSize(1);
            end(again.get(0));
        }
    }

    @Test
    void aTryThatWaitsForOthersEndsWithItsClient() {
        Said said = new Said();
        Client client = client(1);
        client.create(Remote.class, said);
        said.say(endpoints("silent", ClientCluster.MAX_INSTANCES));
        ClientCluster cluster = client.core().clusters.values().iterator().next();
        assertThat(cluster.connectThrottle(false).waiting()).isPositive();
        client.core().end();
        pass(200);
        assertThat(cluster.connectThrottle(false).waiting()).isZero();
    }

    /** Each connection that drains has a call in flight, and the registry then names the instance anew. */
    @Test
    void connectionsThatDrainAreBoundedHoweverOftenARegistryNamesTheirInstance() {
        List<Endpoints.Listener> told = new ArrayList<>();
        Client client =
                builder().connections(1).keepAlive(Duration.ofMinutes(10)).build();
        clients.add(client);
        Remote remote = client.create(Remote.class, (Endpoints) listener -> {
            told.add(listener);
            return () -> {};
        });
        Endpoint flapping = new Endpoint("flapping", 1);
        List<CompletableFuture<String>> calls = new ArrayList<>();
        int rounds = 30;
        for (int i = 0; i < rounds; i++) {
            told.get(0).found(List.of(flapping));
            pass(300);
            EmbeddedChannel channel = hand.opened.get(hand.opened.size() - 1);
            greet(channel);
            calls.add(remote.echoPatiently("x"));
            hand.settle(channel);
            assertThat(connection(channel).load()).isOne();
            told.get(0).found(List.of(new Endpoint("other", 1)));
            pass(300);
            greet(hand.opened.get(hand.opened.size() - 1));
        }
        pass(300);
        // these are the calls of one connection and of four more
        assertThat(calls.subList(0, rounds - 5)).allMatch(CompletableFuture::isCompletedExceptionally);
        assertThat(calls.subList(rounds - 5, rounds)).noneMatch(CompletableFuture::isDone);
        assertThat(hand.opened)
                .filteredOn(channel -> channel.isActive() && connection(channel).load() > 0)
                .hasSize(5);
    }

    /** Netty takes 0 for no timeout. Then the client's own timer would end the connecting, after four times as long. */
    @Test
    void aTimeToConnectOfLessThanAMillisecondIsNotNone() {
        assertThat(ClientCore.connectMillis(Duration.ofNanos(1_000))).isEqualTo(1);
        assertThat(ClientCore.connectMillis(Duration.ofMillis(1))).isEqualTo(1);
        assertThat(ClientCore.connectMillis(Duration.ofNanos(1_000_001))).isEqualTo(2);
        assertThat(ClientCore.connectMillis(Duration.ofHours(1))).isEqualTo(3_600_000);
    }
}
