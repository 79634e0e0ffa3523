package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.client.AnswerTimes;
import dev.rpcx.internal.client.CircuitBreaker;
import dev.rpcx.internal.client.ClassicClientConnection;
import dev.rpcx.internal.client.ClientAddress;
import dev.rpcx.internal.client.ClientCall;
import dev.rpcx.internal.client.ClientConnection;
import dev.rpcx.internal.client.ClientMethod;
import dev.rpcx.internal.client.ClientSteps;
import dev.rpcx.internal.client.PendingConnection;
import dev.rpcx.internal.client.Route;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.Wire;
import io.netty.channel.embedded.EmbeddedChannel;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests calls that wait for a connection. When the time of such a call is over, nothing is left of it, however long
 * there is no connection.
 */
@Timeout(60)
class WaitingCallsTest {
    private static final AnswerTimes TIMES = new AnswerTimes(TimeUnit.MILLISECONDS.toNanos(100));
    private static final int CALLS = 50;
    private static final int BYTES = 100_000;

    @RPCXClient(remoteServerName = "waiting")
    interface Remote {
        @Method(timeoutMillis = 100)
        CompletableFuture<Integer> length(byte[] bytes);

        @Method(value = "length", timeoutMillis = 60_000)
        CompletableFuture<Integer> patientLength(byte[] bytes);

        Flow.Publisher<Integer> lengths(byte[] bytes);

        CompletableFuture<Integer> by(@RouteBy Key key);
    }

    record Key(String name) {}

    /** A subscriber that forgets its subscription when it cancels. */
    private static final class Cancelling implements Flow.Subscriber<Integer> {
        private Flow.@Nullable Subscription subscription;
        private int signals;

        void cancel() {
            Objects.requireNonNull(subscription).cancel();
            subscription = null;
        }

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            given.request(1);
        }

        @Override
        public void onNext(Integer item) {
            signals++;
        }

        @Override
        public void onError(Throwable thrown) {
            signals++;
        }

        @Override
        public void onComplete() {
            signals++;
        }
    }

    private final HandPlatform hand = new HandPlatform();
    private final Client client = Client.builder()
            .platform(hand)
            .eventLoops(1)
            .connections(1, 1)
            .connectTimeout(Duration.ofMinutes(30))
            .build();
    private final List<WeakReference<byte[]>> arguments = new ArrayList<>();
    private final List<CompletableFuture<Integer>> calls = new ArrayList<>();

    @AfterEach
    void stop() {
        client.core().end();
        for (EmbeddedChannel channel : hand.opened) {
            hand.settle(channel);
            channel.close();
            channel.releaseOutbound();
        }
    }

    private void callAll(Remote remote) {
        for (int i = 0; i < CALLS; i++) {
            byte[] bytes = new byte[BYTES];
            arguments.add(new WeakReference<>(bytes));
            calls.add(remote.length(bytes));
        }
        assertThat(calls).allSatisfy(call -> assertThat(call).isNotDone());
    }

    private void expectNothingLeft() {
        hand.ticker.advance(101, TimeUnit.MILLISECONDS);
        // this also runs the tasks of calls, and not only those of the channel
        hand.settle(hand.opened.get(0));
        assertThat(calls).allSatisfy(call -> assertThat(call).isCompletedExceptionally());
        expectNoArguments();
    }

    private void expectNoArguments() {
        Heap.assumeCollected();
        await().untilAsserted(() -> {
            System.gc();
            assertThat(arguments.stream().filter(each -> each.get() != null).count())
                    .isZero();
        });
    }

    @Test
    void nothingIsKeptOfCallsToOneAddressWhoseTimeIsOver() {
        callAll(client.create(Remote.class, "peer", 1));
        expectNothingLeft();
        assertThat(hand.opened.get(0).isOpen()).as("still connecting").isTrue();
    }

    @Test
    void aTryToConnectKnowsOnlyOfCallsThatStillWait() {
        ClientAddress address = new ClientAddress(client.core(), new Endpoint("peer", 1), 1, 1);
        CompletableFuture<ClientConnection> connecting = address.connect(0);
        hand.settle(hand.opened.get(0));
        int own = connecting.getNumberOfDependents();
        List<RPCXException.Code> ends = new ArrayList<>();
        long soon = hand.ticker.nanoTime() + TimeUnit.MILLISECONDS.toNanos(1);
        for (int i = 0; i < CALLS; i++) {
            address.await(
                    0,
                    soon,
                    TIMES,
                    CircuitBreaker.PERMITTED,
                    (connected, failure) ->
                            ends.add(Objects.requireNonNull(failure).code()));
        }
        hand.ticker.advance(2, TimeUnit.MILLISECONDS);
        hand.settle(hand.opened.get(0));
        assertThat(ends).hasSize(CALLS).containsOnly(RPCXException.Code.DEADLINE_EXCEEDED);
        assertThat(connecting).isNotDone();
        assertThat(connecting.getNumberOfDependents()).isEqualTo(own);
    }

    @Test
    void eachCallThatWaitsIsToldOnceAlsoBehindOneThatFails() {
        ClientAddress address = new ClientAddress(client.core(), new Endpoint("peer", 1), 1, 1);
        CompletableFuture<ClientConnection> connecting = address.connect(0);
        List<Integer> told = new ArrayList<>();
        long late = hand.ticker.nanoTime() + TimeUnit.MINUTES.toNanos(1);
        for (int i = 0; i < 3; i++) {
            int number = i;
            address.await(0, late, TIMES, CircuitBreaker.PERMITTED, (connected, failure) -> {
                told.add(number);
                throw new IllegalStateException("by the test, " + failure);
            });
        }
        connecting.completeExceptionally(new IllegalStateException("no server"));
        assertThat(told).containsExactly(0, 1, 2);
        hand.ticker.advance(2, TimeUnit.MINUTES);
        hand.settle(hand.opened.get(0));
        assertThat(told).hasSize(3);
    }

    /** A future reads the text of its failure too. The text is made once, however many calls wait. */
    @Test
    void theLineOfAFailedTryIsMadeOnceForAllCallsThatWaitForIt() {
        int forOne = readsOfAFailure(new ClientAddress(client.core(), new Endpoint("peer", 1), 1, 1), "no server", 1);
        ClientAddress address = new ClientAddress(client.core(), new Endpoint("peer", 2), 1, 1);
        assertThat(readsOfAFailure(address, "no server", CALLS))
                .isEqualTo(forOne)
                .isPositive();
        assertThat(readsOfAFailure(address, "another one", CALLS))
                .as("the next try")
                .isBetween(1, CALLS - 1);
    }

    private int readsOfAFailure(ClientAddress address, String why, int waiting) {
        AtomicInteger reads = new AtomicInteger();
        List<RPCXException> told = new ArrayList<>();
        CompletableFuture<ClientConnection> connecting = address.connect(0);
        long late = hand.ticker.nanoTime() + TimeUnit.MINUTES.toNanos(1);
        for (int i = 0; i < waiting; i++) {
            address.await(
                    0,
                    late,
                    TIMES,
                    CircuitBreaker.PERMITTED,
                    (connected, failure) -> told.add(Objects.requireNonNull(failure)));
        }
        connecting.completeExceptionally(new IllegalStateException(why) {
            private static final long serialVersionUID = 1L;

            @Override
            public String getMessage() {
                reads.incrementAndGet();
                return super.getMessage();
            }
        });
        int counted = reads.get();
        assertThat(told)
                .hasSize(waiting)
                .allSatisfy(failure -> assertThat(failure).hasMessageEndingWith(": " + why));
        return counted;
    }

    /** The test makes more calls than may wait at once. */
    @Test
    void callsThatAreCancelledWhileTheyWaitGiveUpTheirPlacesAndNothingElse() {
        for (Remote remote : List.of(
                client.create(Remote.class, "peer", 1),
                client.create(Remote.class, Endpoints.of(new Endpoint("peer", 1))))) {
            List<Cancelling> streams = new ArrayList<>();
            for (int i = 0; i < Wire.MAX_SLOTS; i++) {
                byte[] bytes = new byte[i < CALLS ? BYTES : 0];
                arguments.add(new WeakReference<>(bytes));
                if (i % 2 == 0) {
                    CompletableFuture<Integer> call = remote.length(bytes);
                    calls.add(call);
                    call.cancel(false);
                } else {
                    Cancelling stream = new Cancelling();
                    streams.add(stream);
                    remote.lengths(bytes).subscribe(stream);
                    stream.cancel();
                }
            }
            expectNoArguments();
            assertThat(streams).allSatisfy(stream -> assertThat(stream.signals).isZero());
            assertThat(remote.length(new byte[1])).isNotDone();
        }
    }

    @Test
    void aStreamThatBreaksARuleWhileItWaitsIsToldSo() {
        Cancelling stream = new Cancelling();
        client.create(Remote.class, "peer", 1).lengths(new byte[1]).subscribe(stream);
        Objects.requireNonNull(stream.subscription).request(-1);
        stream.cancel();
        assertThat(stream.signals).isEqualTo(1);
    }

    @Test
    void nothingIsKeptOfCallsToAServiceWhoseTimeIsOver() {
        Endpoints service = Endpoints.of(new Endpoint("peer", 1));
        Remote remote = client.create(Remote.class, service);
        callAll(remote);
        expectNothingLeft();
        assertThat(hand.opened.get(0).isOpen()).as("still connecting").isTrue();
        assertThat(Objects.requireNonNull(client.core().clusters.get(service)).waiting())
                .isZero();
    }

    private static void fail(EmbeddedChannel channel, HandPlatform hand) {
        channel.close();
        hand.settle(channel);
    }

    /** Fifteen hundred calls wait, and of as many instances all but one fail. */
    @Test
    void aCallThatWaitsKeepsAsLittleOfManyInstancesAsOfOne() {
        int many = 1_500;
        List<Endpoint> all = new ArrayList<>();
        for (int i = 0; i < many; i++) {
            all.add(new Endpoint("peer" + i, 1));
        }
        Endpoints service = Endpoints.of(all.toArray(new Endpoint[0]));
        Remote remote = client.create(Remote.class, service);
        for (int i = 0; i < many; i++) {
            calls.add(remote.patientLength(new byte[0]));
        }
        EmbeddedChannel first = hand.opened.get(0);
        hand.settle(first);
        long before = Heap.usedBytes();
        for (int failed = 1; failed < many; ) {
            while (failed < Math.min(many, hand.opened.size())) {
                // the test does not keep the channel, so that it measures only what the calls keep
                fail(hand.opened.set(failed++, first), hand);
            }
            hand.pass(first, 100, TimeUnit.MILLISECONDS);
        }
        assertThat(calls).allSatisfy(call -> assertThat(call).isNotDone());
        // when each call kept its own set of instances, this took three times as much
        assertThat(Heap.usedBytes() - before).isLessThan(20L << 20);
        fail(first, hand);
        assertThat(calls).allSatisfy(call -> assertThat(call).isCompletedExceptionally());
        // when each call kept the names of all instances, a text took 16 kB
        assertThat(calls).allSatisfy(call -> assertThat(messageOf(call)).hasSizeLessThan(500));
    }

    private static String messageOf(CompletableFuture<?> failed) {
        return failed.handle((result, why) -> why.getMessage()).join();
    }

    @Test
    void theErrorOfACallIsShortWhateverARegistrySaysWhenItFails() {
        Endpoints failing = listener -> {
            listener.failed(new IllegalStateException("x".repeat(1_000_000)));
            return () -> {};
        };
        assertThat(messageOf(client.create(Remote.class, failing).length(new byte[0])))
                .hasSizeLessThan(1_000);
    }

    /** Makes one error of a call fail, as on a heap that is full. */
    private final class Unspeakable extends Route {
        private final PendingConnection<ClientConnection> pending;
        private boolean hasFailed;

        Unspeakable(PendingConnection<ClientConnection> pending) {
            super(client.core());
            this.pending = pending;
        }

        @Override
        public boolean hasOthers(@Nullable ClientAddress used) {
            return false;
        }

        @Override
        @Nullable
        public ClientConnection ready(int key) {
            return null;
        }

        @Override
        @Nullable
        public ClientConnection readyBeside(List<ClientAddress> asked) {
            return null;
        }

        @Override
        public PendingConnection<ClientConnection> connect(int key) {
            return pending;
        }

        @Override
        public PendingConnection<ClassicClientConnection> connectClassic() {
            throw new UnsupportedOperationException();
        }

        @Override
        public String toString() {
            if (!hasFailed) {
                hasFailed = true;
                throw new StackOverflowError("by the test");
            }
            return "unspeakable";
        }
    }

    @Test
    void aCallWhoseErrorCannotBeMadeIsToldAtItsTime() {
        for (boolean isEarly : new boolean[] {true, false}) {
            PendingConnection<ClientConnection> pending = new PendingConnection<>();
            Route route = new Unspeakable(pending);
            if (isEarly) {
                pending.completeExceptionally(new IllegalStateException("no server"));
            }
            List<RPCXException.Code> ends = new ArrayList<>();
            long soon = hand.ticker.nanoTime() + TimeUnit.MILLISECONDS.toNanos(100);
            route.await(
                    0,
                    soon,
                    TIMES,
                    CircuitBreaker.PERMITTED,
                    (connected, failure) ->
                            ends.add(Objects.requireNonNull(failure).code()));
            pending.completeExceptionally(new IllegalStateException("no server"));
            assertThat(ends).isEmpty();
            hand.ticker.advance(101, TimeUnit.MILLISECONDS);
            hand.runTimers();
            assertThat(ends).containsExactly(RPCXException.Code.DEADLINE_EXCEEDED);
            assertThat(route.waitingCalls()).isZero();
        }
    }

    /** Returns a connection that is full, and runs the test's code before it says that there is no other. */
    private final class Filled extends Route {
        private final List<PendingConnection<ClientConnection>> asked = new ArrayList<>();
        private Runnable between = () -> {};

        Filled() {
            super(client.core());
        }

        @Override
        public boolean hasOthers(@Nullable ClientAddress used) {
            return false;
        }

        @Override
        @Nullable
        public ClientConnection ready(int key) {
            between.run();
            return null;
        }

        @Override
        @Nullable
        public ClientConnection readyBeside(List<ClientAddress> others) {
            return null;
        }

        @Override
        public PendingConnection<ClientConnection> connect(int key) {
            PendingConnection<ClientConnection> next = new PendingConnection<>();
            asked.add(next);
            return next;
        }

        @Override
        public PendingConnection<ClassicClientConnection> connectClassic() {
            throw new UnsupportedOperationException();
        }

        @Override
        public String toString() {
            return "filled";
        }
    }

    /** Returns a connection whose server allows one call at a time. */
    private ClientConnection connectionOfOneSlot() {
        client.create(Remote.class, "peer", 1).patientLength(new byte[0]);
        EmbeddedChannel channel = hand.opened.get(0);
        hand.settle(channel);
        ClientConnection connection = Objects.requireNonNull(channel.pipeline().get(ClientConnection.class));
        connection.slots.limit(1);
        return connection;
    }

    @Test
    void aCallThatIsCancelledAsItGoesOnToTheNextWaitIsOver() {
        ClientConnection full = connectionOfOneSlot();
        ClientCall taken = full.slots.acquire(0);
        assertThat(full.isFull()).isTrue();
        Filled route = new Filled();
        List<String> told = new ArrayList<>();
        long late = hand.ticker.nanoTime() + TimeUnit.MINUTES.toNanos(1);
        Route.Wait wait = Objects.requireNonNull(route.await(
                0,
                late,
                TIMES,
                CircuitBreaker.PERMITTED,
                (connected, failure) -> told.add(connected + ", " + failure)));
        List<Boolean> ends = new ArrayList<>();
        route.between = () -> ends.add(wait.giveUp());
        route.asked.get(0).complete(full);
        assertThat(route.asked).hasSize(2);
        assertThat(ends).containsExactly(true);
        assertThat(route.waitingCalls()).isZero();
        assertThat(route.asked.get(1).isWaitedFor()).isFalse();
        route.asked.get(1).complete(full);
        assertThat(told).isEmpty();
        taken.dropUnsent();
    }

    /**
     * One thread makes the call go on to the next wait while another one ends the wait at the deadline. The test holds
     * the monitor of the wait, so the second thread has to stop before it marks the wait as ended, until the first one
     * has checked whether the wait is over.
     */
    @Test
    void aCallWhoseTimeIsOverAsItGoesOnToTheNextWaitIsOver() throws Exception {
        ClientConnection full = connectionOfOneSlot();
        ClientCall taken = full.slots.acquire(0);
        assertThat(full.isFull()).isTrue();
        Filled route = new Filled();
        List<RPCXException.Code> ends = new ArrayList<>();
        long soon = hand.ticker.nanoTime() + TimeUnit.MILLISECONDS.toNanos(100);
        Route.Wait wait = Objects.requireNonNull(route.await(
                0,
                soon,
                TIMES,
                CircuitBreaker.PERMITTED,
                (connected, failure) -> ends.add(Objects.requireNonNull(failure).code())));
        hand.ticker.advance(101, TimeUnit.MILLISECONDS);
        Thread deadline = new Thread(hand::runTimers);
        route.between = () -> {
            deadline.start();
            await().until(() -> deadline.getState() == Thread.State.BLOCKED);
        };
        synchronized (wait) {
            route.asked.get(0).complete(full);
        }
        deadline.join();
        assertThat(route.asked).hasSize(2);
        assertThat(ends).containsExactly(RPCXException.Code.DEADLINE_EXCEEDED);
        assertThat(route.waitingCalls()).isZero();
        assertThat(route.asked.get(1).isWaitedFor()).isFalse();
        taken.dropUnsent();
    }

    @Test
    void aCallThatBeginsToWaitWhenItsClientIsClosedEndsAndIsNotWaitedFor() {
        Filled route = new Filled();
        List<RPCXException.Code> ends = new ArrayList<>();
        long late = hand.ticker.nanoTime() + TimeUnit.MINUTES.toNanos(1);
        client.close();
        route.await(
                0,
                late,
                TIMES,
                CircuitBreaker.PERMITTED,
                (connected, failure) -> ends.add(Objects.requireNonNull(failure).code()));
        assertThat(ends).containsExactly(RPCXException.Code.UNAVAILABLE);
        assertThat(route.waitingCalls()).isZero();
        assertThat(route.asked.get(0).isWaitedFor()).isFalse();
    }

    @Test
    void aCallWaitsUntilEachInstanceHasFailedSinceItCame() {
        Remote remote = client.create(Remote.class, Endpoints.of(new Endpoint("a", 1), new Endpoint("b", 1)));
        calls.add(remote.length(new byte[0]));
        fail(hand.opened.get(0), hand);
        calls.add(remote.length(new byte[0]));
        assertThat(calls.get(0)).isNotDone();
        fail(hand.opened.get(1), hand);
        assertThat(calls.get(0)).isCompletedExceptionally();
        assertThat(calls.get(1)).as("it has seen one of the two fail").isNotDone();
    }

    @Test
    @SuppressWarnings("NullAway") // such a key cannot be sent
    void anAsynchronousCallWithoutAKeyFailsItsFuture() {
        assertThat(client.create(Remote.class, "peer", 1).by(new Key(null))).isCompletedExceptionally();
    }

    @Test
    void proxiesOfOneInterfaceShareTheNumbersOfItsMethods() {
        client.create(Remote.class, "peer", 1);
        int all = client.core().methodsMade();
        for (int i = 0; i < 100; i++) {
            client.create(Remote.class, "peer" + i, 1);
        }
        assertThat(client.core().methodsMade()).isEqualTo(all);
    }

    /** Returns each of these connections once, as a cluster does with the connection of an instance on trial. */
    private final class Once extends Route {
        private final List<ClientConnection> ready;
        private int waits;

        Once(List<ClientConnection> ready) {
            super(client.core());
            this.ready = new ArrayList<>(ready);
        }

        @Override
        public boolean hasOthers(@Nullable ClientAddress used) {
            return true;
        }

        @Override
        @Nullable
        public ClientConnection ready(int key) {
            return ready.isEmpty() ? null : ready.remove(0);
        }

        @Override
        @Nullable
        public ClientConnection readyBeside(List<ClientAddress> others) {
            return null;
        }

        @Override
        public PendingConnection<ClientConnection> connect(int key) {
            waits++;
            return new PendingConnection<>();
        }

        @Override
        public PendingConnection<ClassicClientConnection> connectClassic() {
            throw new UnsupportedOperationException();
        }

        @Override
        public String toString() {
            return "once";
        }
    }

    /**
     * Other calls have filled the connection since it was chosen. The call then looks for another connection, and gets
     * it.
     */
    @Test
    void aCallThatIsOvertakenTakesTheConnectionThatItFinds() throws Exception {
        List<ClientConnection> all = new ArrayList<>();
        for (String peer : List.of("full", "trial")) {
            client.create(Remote.class, peer, 1).patientLength(new byte[0]);
            EmbeddedChannel channel = hand.opened.get(hand.opened.size() - 1);
            hand.settle(channel);
            all.add(Objects.requireNonNull(channel.pipeline().get(ClientConnection.class)));
        }
        ClientConnection full = all.get(0);
        full.slots.limit(1);
        ClientCall taken = full.slots.acquire(0);
        Once route = new Once(all);
        Codecs codecs = Codecs.standard(Remote.class);
        java.lang.reflect.Method length = Remote.class.getMethod("patientLength", byte[].class);
        ClientSteps steps = new ClientSteps(
                new ClientMethod(
                        100,
                        ClientMethod.Kind.ASYNC,
                        "waiting",
                        "length",
                        codecs.parameters(length),
                        codecs.result(length),
                        MethodDictionary.UNKNOWN_SHAPE,
                        MethodSchema.UNKNOWN,
                        TimeUnit.MINUTES.toNanos(1),
                        null,
                        null,
                        null),
                route);
        CompletableFuture<?> call =
                (CompletableFuture<?>) Objects.requireNonNull(steps.call(new Object[] {new byte[0]}, Metadata.EMPTY));
        assertThat(route.waits).isZero();
        assertThat(all.get(1).slots.taken()).isEqualTo(1);
        assertThat(call).isNotDone();
        call.cancel(true);
        taken.dropUnsent();
    }
}
