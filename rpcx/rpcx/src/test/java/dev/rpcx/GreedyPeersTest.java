package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests peers that take everything that a server has to give, and what is left for the others. */
@Timeout(60)
class GreedyPeersTest {
    private static final int GENERATION = 1 << 16;

    private static final int LARGE_BYTES = 100_000;
    private static final int MAX_RUNNING = 40;

    @RPCXServer("greedy")
    static final class Service {
        final CountDownLatch go = new CountDownLatch(1);
        final CountDownLatch loopIsHeld = new CountDownLatch(1);
        final CountDownLatch loopGoes = new CountDownLatch(1);

        @Method
        java.util.concurrent.Flow.Publisher<String> items(String of) {
            return new StreamsTest.Made<>(1, i -> of);
        }

        @Method
        String echo(String text) {
            return text;
        }

        @RunOn(RunOn.Place.POOL)
        @Method
        String large(String text) throws InterruptedException {
            go.await();
            return text.repeat(LARGE_BYTES);
        }

        @Method
        int count(Set<Integer> numbers) {
            return numbers.size();
        }

        @RunOn(RunOn.Place.EVENT_LOOP)
        @Method
        String holdLoop(String text) {
            loopIsHeld.countDown();
            // a loop that waits would be found blocked
            while (loopGoes.getCount() > 0) {
                Thread.onSpinWait();
            }
            return text;
        }
    }

    @RPCXClient(remoteServerName = "greedy")
    interface Caller {
        @Method
        int count(Set<Integer> numbers);
    }

    private final Service service = new Service();

    private final Server server = Server.builder(RegistryServer.registry(service))
            .port(0)
            .maxRunning(MAX_RUNNING)
            .build()
            .start();

    @AfterEach
    void stop() {
        service.go.countDown();
        service.loopGoes.countDown();
        server.close();
    }

    /** Takes so much of this that not even the smallest amount is left. */
    private static List<Charge> takeAll(Server of, Resource kind) {
        List<Charge> taken = new ArrayList<>();
        for (long part = of.core().ledger().max(kind); part > 0; ) {
            Charge charge =
                    Objects.requireNonNull(of.core().ledger().open(null)).charge(kind);
            if (charge.add(part)) {
                taken.add(charge);
            } else {
                part /= 2;
            }
        }
        return taken;
    }

    private static ByteBuf credit(int id) {
        ByteBuf items = Unpooled.buffer();
        Varint.write(items, Long.MAX_VALUE);
        return RawPeer.frame(Wire.CREDIT, id, items);
    }

    private static RPCXException error(RawPeer.Frame frame) {
        assertThat(frame.type()).isEqualTo(Wire.ERROR);
        return WireError.read(Unpooled.wrappedBuffer(frame.payload()));
    }

    private RawPeer greeted() throws IOException {
        RawPeer peer = new RawPeer(server.port());
        peer.send(RawPeer.preface());
        peer.readPreface();
        return peer;
    }

    @Test
    void threeConnectionsThatFillTheHandlersLeaveSomeForOthers() throws Exception {
        List<RawPeer> greedy = new ArrayList<>();
        try (RawPeer honest = greeted()) {
            for (int i = 0; i < 3; i++) {
                RawPeer peer = greeted();
                greedy.add(peer);
                for (int slot = 0; slot < MAX_RUNNING; slot++) {
                    peer.send(RawPeer.request(GENERATION | slot, "greedy", "large", "a"));
                }
                peer.send(RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER));
                RawPeer.Frame answer = peer.readAnswer();
                for (; answer.type() != Wire.PONG; answer = peer.readAnswer()) {
                    assertThat(error(answer).code()).isEqualTo(RPCXException.Code.OVERLOADED);
                }
            }
            assertThat(server.core().running()).isBetween(MAX_RUNNING / 2 + 2, MAX_RUNNING - 1);
            honest.send(RawPeer.request(GENERATION, "greedy", "echo", "a"));
            assertThat(honest.readAnswer().type()).isEqualTo(Wire.REPLY);
        } finally {
            for (RawPeer peer : greedy) {
                peer.close();
            }
        }
    }

    @Test
    void aLargeResultIsChargedBeforeTheEventLoopHearsOfIt() throws Exception {
        try (RawPeer peer = greeted()) {
            peer.send(Unpooled.wrappedBuffer(
                    RawPeer.request(GENERATION, "greedy", "large", "a"),
                    RawPeer.request(GENERATION | 1, "greedy", "holdLoop", "a")));
            service.loopIsHeld.await();
            service.go.countDown();
            await().untilAsserted(() -> assertThat(server.core().ledger().held(Resource.REPLY_BYTES))
                    .isGreaterThanOrEqualTo(LARGE_BYTES));
            service.loopGoes.countDown();
            int bytes = 0;
            while (bytes < LARGE_BYTES) {
                bytes += peer.readAnswer().payload().length;
            }
        }
        await().untilAsserted(() ->
                assertThat(server.core().ledger().held(Resource.REPLY_BYTES)).isZero());
    }

    @Test
    void aLargeResultWithoutRoomIsDroppedAndItsCallerIsTold() throws Exception {
        List<Charge> taken = takeAll(server, Resource.REPLY_BYTES);
        service.go.countDown();
        try (RawPeer peer = greeted()) {
            peer.send(RawPeer.request(GENERATION, "greedy", "large", "a"));
            RPCXException refused = error(peer.readAnswer());
            assertThat(refused.code()).isEqualTo(RPCXException.Code.OVERLOADED);
            assertThat(refused.executed()).isEqualTo(RPCXException.Executed.EXECUTED);
        } finally {
            taken.forEach(Charge::release);
        }
    }

    @Test
    void aLargeRequestIsReadOnlyWhereThereIsMemoryForItsObjects() {
        Set<Integer> many = IntStream.range(0, 100_000).boxed().collect(Collectors.toSet());
        try (Client client = Client.builder().eventLoops(1).connections(1).build()) {
            Caller caller = client.create(Caller.class, "127.0.0.1", server.port());
            List<Charge> taken = takeAll(server, Resource.OBJECT_BYTES);
            assertThatThrownBy(() -> caller.count(many)).isInstanceOfSatisfying(RPCXException.class, refused -> {
                assertThat(refused.code()).isEqualTo(RPCXException.Code.OVERLOADED);
                assertThat(refused.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            });
            assertThat(caller.count(Set.of(1, 2, 3))).isEqualTo(3);
            taken.forEach(Charge::release);
            assertThat(caller.count(many)).isEqualTo(many.size());
        }
        assertThat(server.core().ledger().held(Resource.OBJECT_BYTES)).isZero();
    }

    @Test
    void aStreamWhoseErrorCannotBeChargedEndsOnceAndItsConnectionGoesOn() throws Exception {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(RawPeer.preface());
            peer.readPreface();
            List<Charge> taken = takeAll(server, Resource.ITEM_BYTES_OUT);
            int id = GENERATION;
            peer.send(Unpooled.wrappedBuffer(RawPeer.request(id, "greedy", "items", "one"), credit(id)));
            RawPeer.Frame end = peer.readAnswer();
            assertThat(end.type()).isEqualTo(Wire.ERROR);
            assertThat(end.id()).isEqualTo(id);
            assertThat(WireError.read(Unpooled.wrappedBuffer(end.payload())).code())
                    .isEqualTo(RPCXException.Code.OVERLOADED);

            peer.send(Unpooled.wrappedBuffer(
                    RawPeer.frame(Wire.CANCEL, id, Unpooled.EMPTY_BUFFER),
                    RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER)));
            RawPeer.Frame answer = peer.readAnswer();
            assertThat(answer.type()).isEqualTo(Wire.PONG);
            taken.forEach(Charge::release);
        }
        await().untilAsserted(() ->
                assertThat(server.core().ledger().held(Resource.ITEM_BYTES_OUT)).isZero());
    }
}
