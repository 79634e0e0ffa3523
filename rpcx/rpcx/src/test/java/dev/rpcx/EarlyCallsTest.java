package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Wire;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.embedded.EmbeddedChannel;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests asynchronous calls of a client that has no connection yet: what they send, what they hold, and how the client
 * closes.
 */
@Timeout(60)
class EarlyCallsTest {
    @RPCXServer("early")
    static final class Service {
        final AtomicInteger noted = new AtomicInteger();

        @Method
        String sum(List<Integer> numbers) {
            return String.valueOf(numbers);
        }

        @Method
        Flow.Publisher<String> feed(List<Integer> numbers) {
            return subscriber -> subscriber.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long items) {
                    subscriber.onNext(String.valueOf(numbers));
                    subscriber.onComplete();
                }

                @Override
                public void cancel() {}
            });
        }

        @Method
        void note(String text) {
            noted.incrementAndGet();
        }
    }

    @RPCXClient(remoteServerName = "early")
    interface Calls {
        CompletableFuture<String> sum(List<Integer> numbers);

        @OneWay
        void note(String text);

        @OneWay
        void bytes(byte[] bytes);
    }

    /** The classic wire has no streams. */
    @RPCXClient(remoteServerName = "early")
    interface Streams {
        Flow.Publisher<String> feed(List<Integer> numbers);

        @Method(value = "feed", timeoutMillis = 100)
        Flow.Publisher<String> feedSoon(List<Integer> numbers);
    }

    /** Keeps the first item of a stream, or how the stream ends without one. */
    private static final class First implements Flow.Subscriber<String> {
        final CompletableFuture<String> item = new CompletableFuture<>();
        Flow.@Nullable Subscription subscription;

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            given.request(1);
        }

        @Override
        public void onNext(String text) {
            item.complete(text);
        }

        @Override
        public void onError(Throwable thrown) {
            item.completeExceptionally(thrown);
        }

        @Override
        public void onComplete() {
            item.cancel(false);
        }
    }

    private final Service service = new Service();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .classic(true)
            .build()
            .start();

    @AfterEach
    void stop() {
        server.stop(Duration.ofMillis(500));
    }

    private static Client.Builder builder(boolean isClassic) {
        return isClassic ? Client.builder().classic() : Client.builder();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void argumentsAreReadWhenTheCallIsMade(boolean isClassic) {
        for (int i = 0; i < 20; i++) {
            try (Client client = builder(isClassic).build()) {
                Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
                List<Integer> numbers = new ArrayList<>(List.of(1, 2, 3));
                CompletableFuture<String> said = calls.sum(numbers);
                numbers.clear();
                numbers.add(666);
                assertThat(said.join()).isEqualTo("[1, 2, 3]");
            }
        }
    }

    @Test
    void argumentsOfAStreamAreReadWhenItIsSubscribedTo() {
        for (int i = 0; i < 20; i++) {
            try (Client client = Client.standard()) {
                Streams streams = client.create(Streams.class, "127.0.0.1", server.port());
                List<Integer> numbers = new ArrayList<>(List.of(1, 2));
                Flow.Publisher<String> stream = streams.feed(numbers);
                numbers.add(3);
                First first = new First();
                stream.subscribe(first);
                numbers.clear();
                numbers.add(666);
                assertThat(first.item.join()).isEqualTo("[1, 2, 3]");
                assertThat(client.core().ledger().held(Resource.REQUEST_BYTES)).isZero();
            }
        }
    }

    @Test
    void aStreamThatWaitsForAConnectionIsChargedUntilItEnds() throws Exception {
        // the client can connect to this socket, but nobody ever answers there
        try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
                Client client = Client.builder().eventLoops(1).build()) {
            Streams streams = client.create(Streams.class, "127.0.0.1", silent.getLocalPort());
            List<Integer> many = Collections.nCopies(10_000, 1_000_000);
            First cancelled = new First();
            streams.feed(many).subscribe(cancelled);
            First late = new First();
            streams.feedSoon(many).subscribe(late);
            assertThat(client.core().ledger().held(Resource.REQUEST_BYTES)).isGreaterThan(30_000);
            assertThatThrownBy(late.item::join)
                    .hasCauseInstanceOf(RPCXException.class)
                    .hasMessageContaining("DEADLINE_EXCEEDED");
            assertThat(client.core().ledger().held(Resource.REQUEST_BYTES)).isGreaterThan(30_000);
            Objects.requireNonNull(cancelled.subscription).cancel();
            assertThat(client.core().ledger().held(Resource.REQUEST_BYTES)).isZero();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatWaitsForAConnectionIsChargedUntilItsCallEnds(boolean isClassic) throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                Full full = new Full(silent.getLocalPort());
                Client client = builder(isClassic).eventLoops(1).build()) {
            assertThat(full.taken).isNotEmpty();
            Calls calls = client.create(Calls.class, "127.0.0.1", silent.getLocalPort());
            List<Integer> many = new ArrayList<>();
            for (int i = 0; i < 10_000; i++) {
                many.add(1_000_000 + i);
            }
            List<CompletableFuture<String>> all = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                all.add(calls.sum(many));
            }
            assertThat(client.core().ledger().held(Resource.REQUEST_BYTES)).isGreaterThan(10 * 30_000);
            all.get(0).cancel(true);
            // each account may have only a part of what is left
            List<Charge> others = new ArrayList<>();
            for (int i = 0; i < 30; i++) {
                Charge one = new Account(client.core().ledger()).charge(Resource.REQUEST_BYTES);
                for (long part = client.core().ledger().max(Resource.REQUEST_BYTES); part > 0; ) {
                    if (!one.add(part)) {
                        part /= 2;
                    }
                }
                others.add(one);
            }
            CompletableFuture<String> refused = calls.sum(many);
            assertThatThrownBy(refused::join)
                    .hasCauseInstanceOf(RPCXException.class)
                    .hasMessageContaining("wait for a connection");
            others.forEach(Charge::release);
            all.forEach(each -> each.cancel(true));
            assertThat(client.core().ledger().held(Resource.REQUEST_BYTES)).isZero();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void oneWayCallsThatHaveBeenAcceptedAreSentBeforeTheirClientCloses(boolean isClassic) {
        int calls = 200;
        try (Client client = builder(isClassic).build()) {
            Calls early = client.create(Calls.class, "127.0.0.1", server.port());
            for (int i = 0; i < calls; i++) {
                early.note("x");
            }
        }
        await().until(() -> service.noted.get() == calls);
    }

    /** The calls are more than the socket can take at once. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void andThoseThatAreOnTheirWayOnAConnectionThatIsThereAreSentToo(boolean isClassic) {
        int calls = 300;
        String large = "x".repeat(60_000);
        try (Client client = builder(isClassic).build()) {
            Calls warm = client.create(Calls.class, "127.0.0.1", server.port());
            warm.note("x");
            await().until(() -> service.noted.get() == 1);
            for (int i = 1; i < calls; i++) {
                warm.note(large);
            }
        }
        await().until(() -> service.noted.get() == calls);
    }

    /** Most of the calls have not been sent at all when their server drains. They wait for the next connection. */
    @Test
    void andThoseThatGoFromOneConnectionToTheNextAreSentToo() throws Exception {
        int calls = 150;
        String large = "x".repeat(60_000);
        AtomicInteger taken = new AtomicInteger();
        try (RawServer hand = new RawServer()) {
            Client client = Client.builder().eventLoops(1).connections(1).build();
            Calls remote = client.create(Calls.class, "127.0.0.1", hand.port());
            CompletableFuture<String> first = remote.sum(List.of());
            RawServer.Peer draining = hand.accept(1_000);
            draining.reply(draining.read(Wire.REQUEST).id(), "");
            first.join();
            for (int i = 0; i < calls; i++) {
                remote.note(large);
            }
            draining.send(Wire.GOAWAY, 0);
            // the calls that have not been sent at all go to this connection. Once it is accepted, the client has read
            // the GOAWAY, and the test has not read from the first connection before
            RawServer.Peer next = hand.accept();
            Thread reading = taking(draining, taken);
            reading.join();
            assertThat(taken.get()).isLessThan(calls);
            CompletableFuture<Void> closed = CompletableFuture.runAsync(client::close);
            assertThatThrownBy(() -> closed.get(500, TimeUnit.MILLISECONDS)).isInstanceOf(TimeoutException.class);
            next.write(RawPeer.preface());
            next.send(Wire.DICTIONARY, 0);
            taking(next, taken);
            closed.join();
            await().until(() -> taken.get() == calls);
        }
    }

    /** The callers cannot know until when the arguments may not change. */
    @Test
    void andWithTheArgumentsThatTheyWereMadeWith() throws Exception {
        int calls = 150;
        AtomicInteger taken = new AtomicInteger();
        Queue<Byte> lastBytes = new ConcurrentLinkedQueue<>();
        try (RawServer hand = new RawServer();
                Client client = Client.builder().eventLoops(1).connections(1).build()) {
            Calls remote = client.create(Calls.class, "127.0.0.1", hand.port());
            CompletableFuture<String> first = remote.sum(List.of());
            RawServer.Peer draining = hand.accept(1_000);
            draining.reply(draining.read(Wire.REQUEST).id(), "");
            first.join();
            byte[] large = new byte[60_000];
            for (int i = 0; i < calls; i++) {
                Arrays.fill(large, (byte) 1);
                remote.bytes(large);
            }
            Arrays.fill(large, (byte) 2);
            draining.send(Wire.GOAWAY, 0);
            // once this connection is accepted, the client has read the GOAWAY, and the test has not read from the
            // first connection before
            RawServer.Peer next = hand.accept();
            Thread reading = taking(draining, taken, lastBytes);
            reading.join();
            assertThat(taken.get()).isLessThan(calls);
            next.write(RawPeer.preface());
            next.send(Wire.DICTIONARY, 0);
            taking(next, taken, lastBytes);
            await().until(() -> taken.get() == calls);
            assertThat(lastBytes).hasSize(calls).containsOnly((byte) 1);
            await().untilAsserted(() -> assertThat(client.core().ledger().held(Resource.REQUEST_BYTES))
                    .isZero());
        }
    }

    private static Thread taking(RawServer.Peer peer, AtomicInteger taken) {
        return taking(peer, taken, new ConcurrentLinkedQueue<>());
    }

    /** Takes one-way calls until the connection ends. */
    private static Thread taking(RawServer.Peer peer, AtomicInteger taken, Queue<Byte> lastBytes) {
        Thread thread = new Thread(() -> {
            try {
                while (true) {
                    RawPeer.Frame frame = peer.read();
                    boolean isEnd = (frame.head() & Wire.MORE) == 0;
                    if (isEnd && (frame.type() == Wire.NOTICE || frame.type() == Wire.PART)) {
                        lastBytes.add(frame.payload()[frame.payload().length - 1]);
                        taken.incrementAndGet();
                        peer.send(Wire.REPLY, frame.id());
                    }
                }
            } catch (IOException over) {
                // the client has closed the connection
            }
        });
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    @Test
    void aClientWhoseServerSaysNothingClosesInItsTimeAllTheSame() throws IOException {
        try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            Client client = Client.builder()
                    .callTimeout(Duration.ofMinutes(5))
                    .connectTimeout(Duration.ofMinutes(5))
                    .maxClose(Duration.ofSeconds(1))
                    .build();
            client.create(Calls.class, "127.0.0.1", silent.getLocalPort()).note("x");
            client.close();
            assertThat(client.core().isClosed()).isTrue();
            assertThat(client.core().ledger().held(Resource.REQUEST_BYTES)).isZero();
        }
    }

    /** A channel that runs a task when somebody asks for its pipeline, which is how its connection is looked for. */
    private static final class Looked extends EmbeddedChannel {
        private volatile @Nullable Runnable happens;

        @Override
        public ChannelPipeline pipeline() {
            Runnable now = happens;
            happens = null;
            if (now != null) {
                now.run();
            }
            return super.pipeline();
        }
    }

    @Test
    void aOneWayCallThatLosesItsSlotWhileItsClientClosesIsWaitedFor() throws Exception {
        Client client = Client.builder().eventLoops(1).build();
        CallFuture<String> call = new CallFuture<>();
        Looked looked = new Looked();
        client.core().channels.put(looked, CompletableFuture.completedFuture(null));
        looked.happens = () -> client.core().awaitOnClose(call);
        Thread closing = new Thread(client::close);
        closing.setDaemon(true);
        closing.start();
        await().until(() -> looked.happens == null
                && closing.getState() != Thread.State.RUNNABLE
                && closing.getState() != Thread.State.BLOCKED);
        assertThat(client.core().isClosed()).isFalse();
        call.complete("taken");
        closing.join(20_000);
        assertThat(client.core().isClosed()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aOneWayCallForWhichNoConnectionComesIsToldInTheLog(boolean classic) throws Exception {
        int port;
        try (ServerSocket nobody = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = nobody.getLocalPort();
        }
        CallLogTest.Lines told = new CallLogTest.Lines();
        Logger logger = Logger.getLogger(Client.class.getName());
        logger.addHandler(told);
        logger.setUseParentHandlers(false);
        try (Client client =
                classic ? Client.builder().classic().build() : Client.builder().build()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", port);
            await().until(() -> {
                try {
                    calls.note("for the log");
                } catch (RPCXException known) {
                    // the call failed before it returned, so its caller has been told
                }
                return !told.lines.isEmpty();
            });
        } finally {
            logger.removeHandler(told);
            logger.setUseParentHandlers(true);
        }
        assertThat(told.lines)
                .hasSize(1)
                .allMatch(line -> line.matches(
                        "WARNING a one-way call of early/note at .*:" + port + " failed as UNAVAILABLE, NOT_EXECUTED"));
    }

    /** Holds all connections that a port takes while nobody accepts them, so that no further connection can be made. */
    private static final class Full implements AutoCloseable {
        private final List<Socket> taken = new ArrayList<>();

        Full(int port) throws IOException {
            while (true) {
                Socket socket = new Socket();
                try {
                    socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 300);
                    taken.add(socket);
                } catch (SocketTimeoutException full) {
                    socket.close();
                    return;
                }
            }
        }

        @Override
        public void close() throws IOException {
            for (Socket each : taken) {
                each.close();
            }
        }
    }
}
