package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.call.StreamReceiver;
import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests that a server charges everything that it keeps for calls that are over, for streams that wait, and for requests
 * that it refuses.
 */
@Timeout(60)
class PlacesTest {
    private static final int ITEM_BYTES = 1 << 20;
    private static final int FIRST = 1 << 16;
    private static final int LAST_SLOT = Wire.MAX_SLOTS - 1;

    @RPCXServer("places")
    static final class Service {
        volatile @Nullable WeakReference<CallContext> context;
        volatile Flow.@Nullable Subscriber<?> sender;
        volatile @Nullable StreamReceiver receiver;
        final CompletableFuture<String> unanswered = new CompletableFuture<>();

        @Method
        public String hello(String name) {
            context = new WeakReference<>(CallContext.current().orElseThrow());
            return name;
        }

        @Method
        public Flow.Publisher<String> large() {
            return subscriber -> {
                sender = subscriber;
                new StreamsTest.Made<>(Integer.MAX_VALUE, i -> "x".repeat(ITEM_BYTES)).subscribe(subscriber);
            };
        }

        /** Asks for items, and then wants none of them. */
        @Method
        public CompletableFuture<String> fickle(Flow.Publisher<String> items) {
            receiver = (StreamReceiver) (Object) items;
            items.subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    subscription.request(1);
                    subscription.cancel();
                }

                @Override
                public void onNext(String item) {}

                @Override
                public void onError(Throwable thrown) {}

                @Override
                public void onComplete() {}
            });
            return unanswered;
        }
    }

    private final Service service = new Service();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .host("127.0.0.1")
            .eventLoops(1)
            .build()
            .start();

    @AfterEach
    void stop() {
        service.unanswered.complete("too late");
        server.stop(Duration.ofMillis(200));
    }

    private RawPeer greeted() throws IOException {
        RawPeer raw = new RawPeer(server.port());
        raw.send(RawPeer.preface());
        raw.readPreface();
        return raw;
    }

    private static ByteBuf withMetadata(int id, int entries) {
        ByteBuf list = Unpooled.buffer();
        for (int i = 0; i < entries; i++) {
            String name = Integer.toString(i, 36);
            list.writeByte(1 << 3 | 2).writeByte(2 + name.length());
            list.writeBytes(RawPeer.text(name));
        }
        ByteBuf payload = RawPeer.prelude("places", "hello");
        Varint.write(payload, list.readableBytes());
        payload.writeBytes(list).writeBytes(RawPeer.text("x"));
        return RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.METADATA, id, payload);
    }

    private static void pingPong(RawPeer raw) throws IOException {
        raw.send(RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER));
        while (raw.readAnswer().type() != Wire.PONG) {}
    }

    @Test
    void metadataOfManySmallEntriesEndsTheConnection() throws Exception {
        try (RawPeer raw = greeted()) {
            raw.send(withMetadata(FIRST, Metadata.MAX_ENTRIES));
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.REPLY);
            raw.send(withMetadata(2 * FIRST, Metadata.MAX_ENTRIES + 1));
            RawPeer.Frame last = raw.readAnswer();
            assertThat(last.type()).isEqualTo(Wire.ERROR);
            assertThat(last.id()).isZero();
        }
    }

    @Test
    void aPlaceWithoutACallRefersToNothingOfItsLastCall() throws Exception {
        try (RawPeer raw = greeted()) {
            raw.send(withMetadata(FIRST, 2));
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.REPLY);
            pingPong(raw);
            WeakReference<CallContext> context = Objects.requireNonNull(service.context);
            await().until(() -> {
                System.gc();
                return context.get() == null;
            });
        }
    }

    @Test
    void aStreamThatWaitsForCreditHoldsNoItem() throws Exception {
        try (RawPeer raw = greeted()) {
            raw.send(RawPeer.frame(Wire.REQUEST | Wire.NAMED, FIRST, RawPeer.prelude("places", "large")));
            raw.send(RawPeer.frame(Wire.CREDIT, FIRST, Unpooled.buffer().writeByte(1)));
            int read = 0;
            while (read < ITEM_BYTES) {
                read += raw.readAnswer().payload().length;
            }
            pingPong(raw);
            Outbound sender = (Outbound) Objects.requireNonNull(service.sender);
            assertThat(sender.body.capacity()).isLessThanOrEqualTo(Outbound.MAX_SMALL_BYTES);
        }
    }

    @Test
    void partsOfAnItemThatNobodyTakesAreNotKept() throws Exception {
        try (RawPeer raw = greeted()) {
            raw.send(RawPeer.frame(Wire.REQUEST | Wire.NAMED, FIRST, RawPeer.prelude("places", "fickle")));
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.CREDIT);
            pingPong(raw);
            ByteBuf part = Unpooled.buffer().writeZero(Wire.MAX_PAYLOAD_BYTES);
            raw.send(RawPeer.frame(Wire.ITEM | Wire.MORE, FIRST, part));
            raw.send(RawPeer.frame(Wire.PART | Wire.MORE, FIRST, part));
            pingPong(raw);
            assertThat(Objects.requireNonNull(service.receiver).partBytes()).isZero();
        }
    }

    @Test
    void theBeginOfAFrameIsChargedWhileItsEndIsMissingAndNothingIsLeftOfItsConnection() throws Exception {
        try (RawPeer raw = greeted()) {
            pingPong(raw);
            long before = server.core().ledger().held(Resource.KEPT_BYTES);
            ByteBuf whole = RawPeer.frame(Wire.PING, 8, Unpooled.buffer().writeZero(Wire.MAX_PAYLOAD_BYTES));
            raw.send(whole.readRetainedSlice(12_000));
            await().untilAsserted(() -> assertThat(server.core().ledger().held(Resource.KEPT_BYTES) - before)
                    .isGreaterThanOrEqualTo(12_000));
            raw.send(whole);
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.PONG);
        }
        await().untilAsserted(() ->
                assertThat(server.core().ledger().held(Resource.KEPT_BYTES)).isZero());
    }

    @Test
    void whatIsGatheredForOneWriteIsChargedWhereItHasGrown() throws Exception {
        try (RawPeer raw = greeted()) {
            pingPong(raw);
            long before = server.core().ledger().held(Resource.KEPT_BYTES);
            // the event loop refuses all of them before it writes once
            ByteBuf many = Unpooled.buffer();
            for (int slot = 0; slot < 200; slot++) {
                many.writeBytes(RawPeer.request(FIRST | slot, "places", "missing", "x"));
            }
            raw.send(many);
            for (int slot = 0; slot < 200; slot++) {
                assertThat(raw.readAnswer().type()).isEqualTo(Wire.ERROR);
            }
            await().untilAsserted(() -> assertThat(server.core().ledger().held(Resource.KEPT_BYTES) - before)
                    .isGreaterThan(Outbound.MAX_SMALL_BYTES));
        }
        await().untilAsserted(() ->
                assertThat(server.core().ledger().held(Resource.KEPT_BYTES)).isZero());
    }

    @Test
    void aRefusedRequestInAHighSlotTakesNoMemoryAndATakenOneIsCharged() throws Exception {
        try (RawPeer raw = greeted()) {
            raw.send(RawPeer.request(FIRST | LAST_SLOT, "places", "missing", "x"));
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.ERROR);
            long before = server.core().ledger().held(Resource.TABLE_BYTES);
            raw.send(RawPeer.request(FIRST | LAST_SLOT, "places", "hello", "x"));
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.REPLY);
            assertThat(server.core().ledger().held(Resource.TABLE_BYTES) - before)
                    .isGreaterThan(8 * 4000);
        }
        await().until(() -> server.core().ledger().held(Resource.TABLE_BYTES) == 0);
    }
}
