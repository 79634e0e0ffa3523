package dev.rpcx.internal.ledger;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Again;
import dev.rpcx.ClassicRequests;
import dev.rpcx.Inside;
import dev.rpcx.Method;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RawPeer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.ClassicWire;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests handlers that go on after their connections have gone. They count for the address of their callers. */
@Timeout(60)
class OrphanedWorkTest {
    private static final int GENERATION = 1 << 16;
    private static final String OTHER = "127.0.0.2";

    @RPCXServer("left")
    static final class Service {
        final CountDownLatch release = new CountDownLatch(1);
        final CountDownLatch entered = new CountDownLatch(1);

        /** Continues although it is cancelled. */
        @Method
        public void heedless() {
            boolean done = false;
            while (!done) {
                try {
                    done = release.await(1, TimeUnit.HOURS);
                } catch (InterruptedException e) {
                    // the handler ignores the interrupt on purpose
                }
            }
        }

        /** Continues until it is cancelled. */
        @Method
        public void heeds() throws InterruptedException {
            entered.countDown();
            release.await();
        }

        @Method
        public String hello() {
            return "hello";
        }
    }

    private final Service service = new Service();
    private Server server = serving().build();

    private Server.Builder serving() {
        return Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .eventLoops(1)
                .classic(true);
    }

    private void start(Server.Builder builder) {
        server = builder.build().start();
    }

    @AfterEach
    void stop() {
        service.release.countDown();
        await().until(() -> Inside.core(server).running() == 0);
        server.stop(Duration.ofMillis(200));
        assertThat(Inside.core(server).ledger().audit()).isEmpty();
    }

    /** The operations that both wires have in common here. */
    private interface Peer extends AutoCloseable {
        void send(int type, int call, String method) throws IOException;

        /** Returns the error with which a call ends, or null if the call returns its result. */
        RPCXException.@Nullable Code end() throws IOException;

        @Override
        void close() throws IOException;
    }

    private Peer peer(boolean isClassic, String from) throws IOException {
        RawPeer raw = new RawPeer(server.port(), from);
        if (!isClassic) {
            raw.send(RawPeer.preface());
            raw.readPreface();
        }
        return new Peer() {
            @Override
            public void send(int type, int call, String method) throws IOException {
                if (isClassic) {
                    raw.send(ClassicRequests.of(call, "left", method, List.of(), List.of()));
                    return;
                }
                ByteBuf payload = RawPeer.prelude("left", method);
                Varint.write(payload, 1L << 50);
                raw.send(RawPeer.frame(type | Wire.NAMED | Wire.TIME, GENERATION | call - 1, payload));
            }

            @Override
            public RPCXException.@Nullable Code end() throws IOException {
                if (isClassic) {
                    int length = Unpooled.wrappedBuffer(raw.read(4)).readInt();
                    RPCXException error = ClassicWire.readReply(Unpooled.wrappedBuffer(raw.read(length)))
                            .error();
                    return error == null ? null : error.code();
                }
                RawPeer.Frame frame = raw.readAnswer();
                return frame.type() == Wire.REPLY
                        ? null
                        : WireError.read(Unpooled.wrappedBuffer(frame.payload()))
                                .code();
            }

            @Override
            public void close() throws IOException {
                raw.close();
            }
        };
    }

    private void orphan(boolean isClassic, int type, int count) throws IOException {
        int before = Inside.core(server).running();
        try (Peer peer = peer(isClassic, "127.0.0.1")) {
            for (int i = 1; i <= count; i++) {
                peer.send(type, i, "heedless");
            }
            await().until(() -> Inside.core(server).running() == before + count);
        }
        await().until(() -> Inside.core(server).connections() == 0);
    }

    private RPCXException.@Nullable Code call(boolean isClassic, String from) throws IOException {
        try (Peer peer = peer(isClassic, from)) {
            peer.send(Wire.REQUEST, 1, "hello");
            return peer.end();
        }
    }

    private void whoComesAgainHasWhatItOrphaned(boolean isClassic, int type) throws IOException {
        start(serving().maxRunning(8));
        orphan(isClassic, type, 5);
        assertThat(Inside.core(server).ledger().held(Resource.ORPHANS)).isEqualTo(5);
        // five of the eight handlers run, and a connection with five running handlers may have no more
        assertThat(call(false, "127.0.0.1")).isEqualTo(RPCXException.Code.OVERLOADED);
        assertThat(call(true, "127.0.0.1")).isEqualTo(RPCXException.Code.OVERLOADED);
        assertThat(call(isClassic, OTHER)).isNull();
        service.release.countDown();
        await().until(() -> Inside.core(server).ledger().held(Resource.ORPHANS) == 0);
        assertThat(call(isClassic, "127.0.0.1")).isNull();
    }

    @Test
    void aNoticeWhoseClientIsGoneGoesOnForTheLargestTimeOfACall() throws Exception {
        start(serving().maxCallTime(Duration.ofMillis(300)));
        try (Peer peer = peer(false, "127.0.0.1")) {
            AtomicInteger calls = new AtomicInteger();
            // the time of the call may be over before the handler has begun
            Again.upToFiveTimes(60, () -> {
                peer.send(Wire.NOTICE, calls.incrementAndGet(), "heeds");
                assertThat(peer.end()).isNull();
                await().until(() ->
                        service.entered.getCount() == 0 || Inside.core(server).running() == 0);
                assertThat(service.entered.getCount()).isZero();
            });
        }
        await().until(() ->
                Inside.core(server).connections() == 0 && Inside.core(server).running() == 0);
        assertThat(service.release.getCount()).isEqualTo(1);
        await().until(() -> Inside.core(server).ledger().held(Resource.ORPHANS) == 0);
    }

    @ParameterizedTest
    @ValueSource(ints = {Wire.REQUEST, Wire.NOTICE})
    void whoComesAgainHasNoMoreHandlersThanWhoStays(int type) throws IOException {
        whoComesAgainHasWhatItOrphaned(false, type);
    }

    @Test
    void whoComesAgainByTheClassicWireHasNoMoreHandlersThanWhoStays() throws IOException {
        whoComesAgainHasWhatItOrphaned(true, Wire.REQUEST);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anAddressHasAsManyHandlersAsItsConnectionsMayHaveCalls(boolean isClassic) throws IOException {
        start(serving().maxConnectionsPerAddress(2).maxCalls(3));
        for (int i = 0; i < 2; i++) {
            orphan(isClassic, Wire.NOTICE, 3);
        }
        assertThat(Inside.core(server).running()).isEqualTo(6);
        assertThat(call(isClassic, "127.0.0.1")).isEqualTo(RPCXException.Code.OVERLOADED);
        assertThat(call(isClassic, OTHER)).isNull();
        service.release.countDown();
        await().until(() -> Inside.core(server).running() == 0
                && Inside.core(server).ledger().held(Resource.CALLS) == 0);
        assertThat(call(isClassic, "127.0.0.1")).isNull();
    }
}
