package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.client.CallSlots;
import dev.rpcx.internal.client.ClientCall;
import dev.rpcx.internal.client.ClientConnection;
import dev.rpcx.internal.client.ClientMethod;
import dev.rpcx.internal.client.ClientSteps;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.embedded.EmbeddedChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests connections beyond the number that a client keeps: when they are made, and when they are closed. */
@Timeout(120)
class ExtraConnectionsTest {
    @RPCXServer("extra")
    static final class Service {
        @Method
        String echo(String text) {
            return text;
        }

        private final CompletableFuture<String> gate = new CompletableFuture<>();
        private final AtomicInteger begun = new AtomicInteger();

        @Method
        CompletableFuture<String> held() {
            begun.incrementAndGet();
            return gate;
        }

        @Method
        Flow.Publisher<String> items(int n) {
            return new StreamsTest.Made<>(n, i -> "item " + i);
        }
    }

    @RPCXClient(remoteServerName = "extra")
    interface Calls {
        String echo(String text);

        @Method("echo")
        CompletableFuture<String> echoLater(String text);

        CompletableFuture<String> held();

        @Method("held")
        String heldHere();

        Flow.Publisher<String> items(int n);
    }

    private static Server server(int maxCalls) {
        return Server.builder(RegistryServer.registry(new Service()))
                .host("127.0.0.1")
                .maxCalls(maxCalls)
                .build()
                .start();
    }

    @Test
    void aCallerWithOneCallAtATimeHasOneConnectionHoweverFewCallsTheServerTakes() throws Exception {
        Server server = server(1);
        try (Client client = Client.builder().eventLoops(1).build()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            for (int i = 0; i < 50; i++) {
                assertThat(calls.echo("x")).isEqualTo("x");
            }
            // before this task, the loop has begun whatever the calls have asked it for
            CountDownLatch behind = new CountDownLatch(1);
            assertThat(client.core().execute(behind::countDown)).isTrue();
            behind.await();
            assertThat(client.core().channels).hasSize(1);
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    /** More than one connection has to be made for the burst, one after the other, while its calls wait. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aBurstOfBlockingCallersFillsAllConnections(boolean isOfSeveral) throws Exception {
        int callers = 40;
        Service service = new Service();
        Server server = Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .maxCalls(10)
                .build()
                .start();
        Queue<String> ends = new ConcurrentLinkedQueue<>();
        try (Client client = Client.builder().connections(1, 4).build()) {
            Calls calls = isOfSeveral
                    ? client.create(Calls.class, Endpoints.of(new Endpoint("127.0.0.1", server.port())))
                    : client.create(Calls.class, "127.0.0.1", server.port());
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < callers; i++) {
                Thread caller = new Thread(() -> {
                    try {
                        ends.add(calls.heldHere());
                    } catch (RPCXException e) {
                        ends.add(e.toString());
                    }
                });
                caller.start();
                threads.add(caller);
            }
            await().until(() -> service.begun.get() == callers || !ends.isEmpty());
            service.gate.complete("y");
            for (Thread caller : threads) {
                caller.join();
            }
            assertThat(ends).hasSize(callers).containsOnly("y");
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    /** A thread keeps to one connection while that takes its calls, and no longer. */
    @ParameterizedTest
    @CsvSource({"4, 4, 40", "1, 2, 20", "2, 2, 20", "1, 4, 40", "2, 4, 40"})
    void aBurstOfOneThreadFillsAllConnections(int min, int max, int burst) throws Exception {
        Service service = new Service();
        Server server = Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .maxCalls(10)
                .build()
                .start();
        try (Client client =
                Client.builder().connections(min, max).eventLoops(1).build()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            List<Thread> callers = new ArrayList<>();
            for (int i = 0; i < min; i++) {
                Thread caller = new Thread(() -> calls.echo("x"));
                caller.start();
                callers.add(caller);
            }
            for (Thread caller : callers) {
                caller.join();
            }
            List<CompletableFuture<String>> all = new ArrayList<>();
            for (int i = 0; i < burst; i++) {
                all.add(calls.held());
            }
            await().until(() -> service.begun.get() == burst || all.stream().anyMatch(CompletableFuture::isDone));
            service.gate.complete("y");
            for (CompletableFuture<String> one : all) {
                assertThat(one.get(20, TimeUnit.SECONDS)).isEqualTo("y");
            }
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    /** Returns the ids of the frames of this type that the client has written since the last call of this method. */
    private static List<Integer> ids(EmbeddedChannel channel, int type, boolean isFirst) {
        ByteBuf said = Unpooled.wrappedBuffer(HandPlatform.written(channel));
        if (isFirst) {
            said.skipBytes(Wire.PREFACE_BYTES);
        }
        List<Integer> ids = new ArrayList<>();
        while (said.isReadable()) {
            int length = Varint.readLength(said, Wire.MAX_FRAME_BYTES, "a frame");
            int head = said.readUnsignedByte();
            int id = said.readInt();
            said.skipBytes(length - Wire.HEAD_BYTES);
            if ((head & Wire.TYPE_MASK) == type) {
                ids.add(id);
            }
        }
        return ids;
    }

    private static void send(HandPlatform hand, EmbeddedChannel channel, ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        hand.read(channel, all, 0, all.length);
    }

    private static void greet(HandPlatform hand, EmbeddedChannel channel) {
        hand.settle(channel);
        ByteBuf settings = Unpooled.buffer();
        new Settings(1 << 20, 2, 10_000_000).write(settings);
        send(hand, channel, RawPeer.preface());
        send(hand, channel, RawPeer.frame(Wire.SETTINGS, 0, settings));
        send(hand, channel, RawPeer.frame(Wire.DICTIONARY, 0, Unpooled.EMPTY_BUFFER));
    }

    private static void pass(HandPlatform hand, int seconds) {
        hand.ticker.advance(seconds, TimeUnit.SECONDS);
        List.copyOf(hand.opened).forEach(hand::settle);
    }

    private static Client client(HandPlatform hand) {
        return Client.builder()
                .platform(hand)
                .connections(1, 2)
                .callTimeout(Duration.ofMinutes(30))
                .keepAlive(Duration.ofMinutes(10))
                .build();
    }

    private static ClientSteps echo(Client client) throws Exception {
        Codecs codecs = Codecs.standard(Calls.class);
        java.lang.reflect.Method echo = Calls.class.getMethod("echoLater", String.class);
        return new ClientSteps(
                new ClientMethod(
                        100,
                        ClientMethod.Kind.ASYNC,
                        "extra",
                        "echo",
                        codecs.parameters(echo),
                        codecs.result(echo),
                        MethodDictionary.UNKNOWN_SHAPE,
                        MethodSchema.UNKNOWN,
                        TimeUnit.MINUTES.toNanos(1),
                        null,
                        null,
                        null),
                client.core().address("peer", 1));
    }

    /** The connection is found idle after it was chosen for the call, and before the call takes a slot of it. */
    @Test
    void aCallWhoseConnectionIsFoundIdleAsItTakesItGoesToAnother() throws Exception {
        HandPlatform hand = new HandPlatform();
        Client client = client(hand);
        Calls calls = client.create(Calls.class, "peer", 1);
        CompletableFuture<String> first = calls.echoLater("a");
        EmbeddedChannel kept = hand.opened.get(0);
        greet(hand, kept);
        CompletableFuture<String> second = calls.echoLater("b");
        EmbeddedChannel extra = hand.opened.get(1);
        greet(hand, extra);
        hand.settle(kept);
        send(hand, kept, RawPeer.frame(Wire.REPLY, ids(kept, Wire.REQUEST, true).get(0), RawPeer.text("a")));
        ClientConnection parting = extra.pipeline().get(ClientConnection.class);
        parting.isParting = true;
        ClientSteps steps = echo(client);
        long deadline = hand.ticker.nanoTime() + TimeUnit.MINUTES.toNanos(1);
        ClientCall call =
                steps.writer.prepare(parting, new Object[] {"x"}, null, Metadata.EMPTY, deadline, parting.nanoTime());
        assertThat(call.connection).isSameAs(kept.pipeline().get(ClientConnection.class));
        assertThat(parting.slots.taken()).isZero();
        call.dropUnsent();
        // no other connection is made in its place before it is gone
        assertThat(hand.opened).hasSize(2);
        hand.end(client, kept, List.of(first, second));
    }

    /** The look for another connection fails, as for want of memory. */
    @Test
    void theSlotOfAConnectionThatIsFoundIdleComesBackWhereAnotherCannotBeLookedFor() throws Exception {
        HandPlatform hand = new HandPlatform();
        Client client = client(hand);
        Calls calls = client.create(Calls.class, "peer", 1);
        CompletableFuture<String> first = calls.echoLater("a");
        EmbeddedChannel kept = hand.opened.get(0);
        greet(hand, kept);
        CompletableFuture<String> second = calls.echoLater("b");
        EmbeddedChannel extra = hand.opened.get(1);
        greet(hand, extra);
        hand.settle(kept);
        ClientConnection parting = extra.pipeline().get(ClientConnection.class);
        parting.isParting = true;
        ClientSteps steps = echo(client);
        long now = parting.nanoTime();
        long deadline = now + TimeUnit.MINUTES.toNanos(1);
        // since the other connection is crowded, the look reads the clock to learn when one more may be made
        hand.ticker.failAt(1);
        assertThatThrownBy(() -> steps.writer.prepare(parting, new Object[] {"x"}, null, Metadata.EMPTY, deadline, now))
                .isInstanceOf(OutOfMemoryError.class);
        assertThat(parting.slots.taken()).isEqualTo(1);
        parting.lookForOrphans();
        hand.settle(extra);
        assertThat(parting.slots.taken()).isZero();
        hand.end(client, kept, List.of(first, second));
    }

    @Test
    void whatABurstHasOpenedIsClosedWhenItIsIdleAndOpenedAgainByTheNext() {
        HandPlatform hand = new HandPlatform();
        Client client = client(hand);
        Calls calls = client.create(Calls.class, "peer", 1);
        CompletableFuture<String> first = calls.echoLater("a");
        EmbeddedChannel kept = hand.opened.get(0);
        greet(hand, kept);
        CompletableFuture<String> second = calls.echoLater("b");
        assertThat(hand.opened).hasSize(2);
        EmbeddedChannel extra = hand.opened.get(1);
        greet(hand, extra);
        CompletableFuture<String> third = calls.echoLater("c");
        hand.settle(kept);
        hand.settle(extra);
        List<Integer> onKept = ids(kept, Wire.REQUEST, true);
        List<Integer> onExtra = ids(extra, Wire.REQUEST, true);
        assertThat(onKept).hasSize(2);
        assertThat(onExtra).hasSize(1);
        pass(hand, 25);
        assertThat(extra.isActive()).as("with a call in flight").isTrue();
        send(hand, extra, RawPeer.frame(Wire.REPLY, onExtra.get(0), RawPeer.text("c")));
        assertThat(third).isCompletedWithValue("c");
        pass(hand, 4);
        assertThat(extra.isActive()).as("a while after its call").isTrue();
        // this is the slot of a caller that has chosen the connection and has not sent its call
        CallSlots slots = extra.pipeline().get(ClientConnection.class).slots;
        ClientCall taken = slots.acquire(0);
        pass(hand, 10);
        pass(hand, 10);
        pass(hand, 10);
        assertThat(extra.isActive()).as("with a slot that is taken").isTrue();
        taken.dropUnsent();
        pass(hand, 10);
        pass(hand, 10);
        pass(hand, 10);
        assertThat(extra.isActive()).as("while the other is full").isTrue();
        send(hand, kept, RawPeer.frame(Wire.REPLY, onKept.get(0), RawPeer.text("a")));
        assertThat(first).isCompletedWithValue("a");
        pass(hand, 10);
        assertThat(extra.isActive()).as("while the other is crowded").isTrue();
        send(hand, kept, RawPeer.frame(Wire.REPLY, onKept.get(1), RawPeer.text("b")));
        assertThat(second).isCompletedWithValue("b");
        pass(hand, 10);
        assertThat(ids(extra, Wire.GOAWAY, false)).hasSize(1);
        // the connection is closed by the end of its stream
        pass(hand, 3);
        assertThat(extra.isActive()).isFalse();
        assertThat(client.core().channels).hasSize(1);
        assertThat(kept.isActive()).isTrue();
        // the address does not count this as a failure of its server, and opens another connection when it needs one
        CompletableFuture<String> fourth = calls.echoLater("d");
        hand.settle(kept);
        CompletableFuture<String> fifth = calls.echoLater("e");
        assertThat(hand.opened).hasSize(3);
        pass(hand, 60);
        assertThat(kept.isActive()).as("the one that is kept").isTrue();
        hand.end(client, kept, List.of(first, second, third, fourth, fifth));
    }

    /** This happens after the close of an idle connection, and in the first burst of a client. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallThatNoConnectionTakesWaitsForTheOneThatComes(boolean isOfSeveral) {
        HandPlatform hand = new HandPlatform();
        Client client = client(hand);
        Calls calls = isOfSeveral
                ? client.create(Calls.class, Endpoints.of(new Endpoint("peer", 1)))
                : client.create(Calls.class, "peer", 1);
        CompletableFuture<String> first = calls.echoLater("a");
        EmbeddedChannel kept = hand.opened.get(0);
        greet(hand, kept);
        CompletableFuture<String> second = calls.echoLater("b");
        hand.settle(kept);
        assertThat(hand.opened).hasSize(2);
        CompletableFuture<String> third = calls.echoLater("c");
        StreamsTest.Collected<String> stream = new StreamsTest.Collected<>(10);
        calls.items(1).subscribe(stream);
        assertThat(third).isNotDone();
        EmbeddedChannel extra = hand.opened.get(1);
        greet(hand, extra);
        List<Integer> onExtra = ids(extra, Wire.REQUEST, true);
        assertThat(onExtra).hasSize(2);
        send(hand, extra, RawPeer.frame(Wire.REPLY, onExtra.get(0), RawPeer.text("c")));
        assertThat(third).isCompletedWithValue("c");
        send(hand, extra, RawPeer.frame(Wire.ITEM, onExtra.get(1), RawPeer.text("item")));
        send(hand, extra, RawPeer.frame(Wire.REPLY, onExtra.get(1), Unpooled.EMPTY_BUFFER));
        assertThat(stream.end).isCompletedWithValue(List.of("item"));
        hand.end(client, kept, List.of(first, second, third));
    }

    /** The further connection is not made, for example because its SYN is lost or nobody greets there. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallThatWaitsForOneMoreConnectionTakesTheOneThatHasRoomBefore(boolean isOfSeveral) {
        HandPlatform hand = new HandPlatform();
        Client client = client(hand);
        Calls calls = isOfSeveral
                ? client.create(Calls.class, Endpoints.of(new Endpoint("peer", 1)))
                : client.create(Calls.class, "peer", 1);
        CompletableFuture<String> first = calls.echoLater("a");
        EmbeddedChannel kept = hand.opened.get(0);
        greet(hand, kept);
        CompletableFuture<String> second = calls.echoLater("b");
        hand.settle(kept);
        List<Integer> before = ids(kept, Wire.REQUEST, true);
        List<CompletableFuture<String>> waiting = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            waiting.add(calls.echoLater("c" + i));
        }
        assertThat(hand.opened).hasSize(2);
        hand.pass(kept, 100, TimeUnit.MILLISECONDS);
        hand.settle(kept);
        assertThat(ids(kept, Wire.REQUEST, false)).as("while it is full").isEmpty();
        send(hand, kept, RawPeer.frame(Wire.REPLY, before.get(0), RawPeer.text("a")));
        send(hand, kept, RawPeer.frame(Wire.REPLY, before.get(1), RawPeer.text("b")));
        hand.pass(kept, 20, TimeUnit.MILLISECONDS);
        hand.settle(kept);
        List<Integer> after = ids(kept, Wire.REQUEST, false);
        assertThat(after).hasSize(2);
        send(hand, kept, RawPeer.frame(Wire.REPLY, after.get(0), RawPeer.text("c")));
        assertThat(waiting.get(0)).isCompletedWithValue("c");
        hand.pass(kept, 20, TimeUnit.MILLISECONDS);
        hand.settle(kept);
        assertThat(ids(kept, Wire.REQUEST, false)).hasSize(1);
        waiting.add(first);
        waiting.add(second);
        hand.end(client, kept, List.copyOf(waiting));
    }

    @Test
    void soDoesACallerWhoBlocks() throws Exception {
        try (RawServer server = new RawServer();
                Client client = Client.builder()
                        .eventLoops(1)
                        .connections(1, 2)
                        .connectTimeout(Duration.ofSeconds(30))
                        .build()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            CompletableFuture<String> first = calls.echoLater("a");
            try (RawServer.Peer kept = server.accept(1)) {
                int id = kept.read(Wire.REQUEST).id();
                CompletableFuture<String> second = new CompletableFuture<>();
                Thread caller = new Thread(() -> second.complete(calls.echo("b")));
                caller.setDaemon(true);
                caller.start();
                // the second connection is made, but the server never greets on it
                try (RawServer.Peer silent = server.accept()) {
                    await().until(() -> caller.getState() == Thread.State.TIMED_WAITING);
                    kept.reply(id, "a");
                    assertThat(first.get(20, TimeUnit.SECONDS)).isEqualTo("a");
                    kept.timeout(10_000);
                    kept.reply(kept.read(Wire.REQUEST).id(), "b");
                    assertThat(second.get(20, TimeUnit.SECONDS)).isEqualTo("b");
                    assertThat(silent).isNotNull();
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallThatNoConnectionTakesIsRefusedWhenNoMoreComes(boolean isOfSeveral) {
        HandPlatform hand = new HandPlatform();
        Client client = client(hand);
        Calls calls = isOfSeveral
                ? client.create(Calls.class, Endpoints.of(new Endpoint("peer", 1)))
                : client.create(Calls.class, "peer", 1);
        CompletableFuture<String> first = calls.echoLater("a");
        EmbeddedChannel kept = hand.opened.get(0);
        greet(hand, kept);
        CompletableFuture<String> second = calls.echoLater("b");
        hand.settle(kept);
        CompletableFuture<String> third = calls.echoLater("c");
        assertThat(third).isNotDone();
        for (int failed = 1; !third.isDone(); failed++) {
            // the pauses grow, and the call does not wait for the end of one above 100 ms
            assertThat(hand.opened).hasSize(failed + 1).hasSizeLessThan(10);
            EmbeddedChannel extra = hand.opened.get(failed);
            extra.close();
            hand.settle(extra);
            hand.pass(kept, 100, TimeUnit.MILLISECONDS);
        }
        assertThat(third).isCompletedExceptionally();
        assertThat(first).isNotDone();
        hand.end(client, kept, List.of(first, second, third));
    }

    /** The pause after one failed attempt to connect is short. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallThatNoConnectionTakesWaitsForTheNextTryAfterOneThatHasFailed(boolean isOfSeveral) {
        HandPlatform hand = new HandPlatform();
        Client client = client(hand);
        Calls calls = isOfSeveral
                ? client.create(Calls.class, Endpoints.of(new Endpoint("peer", 1)))
                : client.create(Calls.class, "peer", 1);
        CompletableFuture<String> first = calls.echoLater("a");
        EmbeddedChannel kept = hand.opened.get(0);
        greet(hand, kept);
        CompletableFuture<String> second = calls.echoLater("b");
        hand.settle(kept);
        CompletableFuture<String> third = calls.echoLater("c");
        EmbeddedChannel refused = hand.opened.get(1);
        refused.close();
        hand.settle(refused);
        CompletableFuture<String> fourth = calls.echoLater("d");
        assertThat(third).isNotDone();
        assertThat(fourth).as("made in the pause").isNotDone();
        assertThat(hand.opened).as("in the pause").hasSize(2);
        hand.pass(kept, 20, TimeUnit.MILLISECONDS);
        assertThat(hand.opened).hasSize(3);
        EmbeddedChannel next = hand.opened.get(2);
        greet(hand, next);
        hand.settle(next);
        assertThat(ids(next, Wire.REQUEST, true)).hasSize(2);
        hand.end(client, kept, List.of(first, second, third, fourth));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallThatWaitsForOneMoreConnectionEndsWithItsClient(boolean isOfSeveral) {
        HandPlatform hand = new HandPlatform();
        Client client = client(hand);
        Calls calls = isOfSeveral
                ? client.create(Calls.class, Endpoints.of(new Endpoint("peer", 1)))
                : client.create(Calls.class, "peer", 1);
        CompletableFuture<String> first = calls.echoLater("a");
        EmbeddedChannel kept = hand.opened.get(0);
        greet(hand, kept);
        CompletableFuture<String> second = calls.echoLater("b");
        hand.settle(kept);
        CompletableFuture<String> third = calls.echoLater("c");
        assertThat(third).isNotDone();
        client.core().end();
        assertThat(third).isDone();
        hand.end(client, kept, List.of(first, second, third));
    }

    /** One instance has all its connections, and all of them are full. */
    @Test
    void callsWaitForTheConnectionThatComesToOneInstanceBesideOneThatIsFullForGood() {
        HandPlatform hand = new HandPlatform();
        Client client = client(hand);
        Calls calls = client.create(Calls.class, Endpoints.of(new Endpoint("one", 1), new Endpoint("other", 1)));
        pass(hand, 0);
        greet(hand, hand.opened.get(0));
        greet(hand, hand.opened.get(1));
        List<CompletableFuture<?>> all = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            all.add(calls.echoLater("first"));
            pass(hand, 0);
        }
        assertThat(hand.opened).as("one more comes to each").hasSize(4);
        List<CompletableFuture<String>> waiting = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            waiting.add(calls.echoLater("waiting"));
        }
        all.addAll(waiting);
        EmbeddedChannel one = hand.opened.get(2);
        greet(hand, one);
        hand.settle(one);
        assertThat(ids(one, Wire.REQUEST, true)).hasSize(2);
        assertThat(waiting).noneMatch(CompletableFuture::isDone);
        CompletableFuture<String> late = calls.echoLater("late");
        all.add(late);
        assertThat(late).isNotDone();
        EmbeddedChannel other = hand.opened.get(3);
        greet(hand, other);
        hand.settle(other);
        assertThat(ids(other, Wire.REQUEST, true)).hasSize(2);
        hand.end(client, one, all);
    }

    /**
     * Looks at all extra connections, as their timers do, until the callers are done.
     *
     * @return how many it has closed
     */
    private static int part(Client client, AtomicInteger working) throws Exception {
        int parted = 0;
        while (working.get() > 0) {
            for (Channel channel : client.core().channels.keySet()) {
                ClientConnection connection = channel.pipeline().get(ClientConnection.class);
                if (connection != null && connection.isExtra && connection.hasBegun()) {
                    connection.loop().submit(connection::partIfIdle).get();
                    parted += connection.isParting ? 1 : 0;
                }
            }
        }
        return parted;
    }

    /** Some of the calls are streams, which cannot be sent again. */
    @Test
    void noCallFailsWhereverItIsWhenItsConnectionIsFoundIdle() throws Exception {
        int callers = 12;
        Server server = server(callers + 1);
        Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
        AtomicInteger working = new AtomicInteger(callers);
        try (Client client = Client.builder().connections(1, 4).build()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            int each = LongForm.of(1_000, 20_000);
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < callers; i++) {
                int number = i;
                Thread thread = new Thread(() -> {
                    try {
                        for (int call = 0; call < each; call++) {
                            one(calls, number + call);
                        }
                    } catch (Throwable e) {
                        failures.add(e);
                    } finally {
                        working.decrementAndGet();
                    }
                });
                threads.add(thread);
                thread.start();
            }
            int parted = part(client, working);
            for (Thread thread : threads) {
                thread.join();
            }
            assertThat(failures).isEmpty();
            assertThat(parted).isPositive();
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    private static void one(Calls calls, int number) throws Exception {
        if (number % 3 == 0) {
            assertThat(calls.echo("x")).isEqualTo("x");
        } else if (number % 3 == 1) {
            assertThat(calls.echoLater("y").get(20, TimeUnit.SECONDS)).isEqualTo("y");
        } else {
            StreamsTest.Collected<String> collected = new StreamsTest.Collected<>(10);
            calls.items(3).subscribe(collected);
            assertThat(collected.end.get(20, TimeUnit.SECONDS)).hasSize(3);
        }
    }
}
