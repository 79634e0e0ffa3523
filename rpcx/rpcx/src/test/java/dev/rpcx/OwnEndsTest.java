package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.TimedContext;
import dev.rpcx.internal.client.ClientConnection;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests callers that end the futures and subscriptions of their calls themselves, in each state of the call, and keep
 * them. A call that waits holds nothing as soon as it is ended so. A call that is in flight holds nothing once its time
 * is over. The test acts as the server.
 */
@Timeout(60)
class OwnEndsTest {
    private static final int BYTES = 10_000;

    @RPCXClient(remoteServerName = "hand")
    interface Remote {
        @Method(idempotent = true)
        CompletableFuture<String> call(byte[] bytes);

        @Method(value = "call", idempotent = true, hedgeMillis = 50)
        CompletableFuture<String> hedged(byte[] bytes);

        @Method(timeoutMillis = 10_000)
        CompletableFuture<String> takes(Flow.Publisher<String> items);

        @Method(timeoutMillis = 10_000)
        Flow.Publisher<String> brings(byte[] bytes);
    }

    @RPCXClient(remoteServerName = "hand")
    interface Classic {
        CompletableFuture<String> call(byte[] bytes);
    }

    /** This is the state of a call when its caller ends it. */
    private enum State {
        /** The call waits for the first connection. */
        WAITS,
        HEDGED_WAITS,
        BOTH_WAIT,
        UPLOAD_WAITS,
        CLASSIC_WAITS,
        /** The connection is lost after the request was sent. */
        WAITS_AGAIN,
        /** The server says that it drains before it has read the request. */
        WAITS_FOR_THE_NEXT,
        UNSENT,
        SENT,
        REPLY_IN_PARTS,
        HEDGED_SENT,
        BOTH_SENT,
        UPLOAD_SENT,
        CLASSIC_SENT;

        boolean isWaiting() {
            return name().contains("WAIT");
        }
    }

    /** This is how the caller ends the call. */
    private enum End {
        COMPLETE,
        COMPLETE_EXCEPTIONALLY,
        COMPLETE_ASYNC,
        OR_TIMEOUT,
        COMPLETE_ON_TIMEOUT,
        OBTRUDE_VALUE,
        OBTRUDE_EXCEPTION,
        CANCEL;

        void of(CompletableFuture<String> call) {
            IllegalStateException failure = new IllegalStateException("of the caller's own");
            switch (this) {
                case COMPLETE -> call.complete("own");
                case COMPLETE_EXCEPTIONALLY -> call.completeExceptionally(failure);
                case COMPLETE_ASYNC -> call.completeAsync(() -> "own", Runnable::run);
                case OR_TIMEOUT -> call.orTimeout(1, TimeUnit.MILLISECONDS);
                case COMPLETE_ON_TIMEOUT -> call.completeOnTimeout("own", 1, TimeUnit.MILLISECONDS);
                case OBTRUDE_VALUE -> call.obtrudeValue("own");
                case OBTRUDE_EXCEPTION -> call.obtrudeException(failure);
                case CANCEL -> call.cancel(true);
            }
            await().pollDelay(Duration.ZERO).until(call::isDone);
            if (name().endsWith("TIMEOUT")) {
                // what depends on the future runs on the JDK's one thread for such times, so it has run when that
                // thread ends another future
                CompletableFuture<String> next = new CompletableFuture<String>().orTimeout(1, TimeUnit.MILLISECONDS);
                await().pollDelay(Duration.ZERO).until(next::isDone);
            }
        }
    }

    /** This is the state of the call of a stream when its subscriber ends it. */
    private enum StreamState {
        /** The subscriber is just being given the subscription. */
        BEGINS,
        WAITS,
        WAITS_FOR_THE_NEXT,
        UNSENT,
        SENT,
        ITEM_IN_PARTS
    }

    private enum StreamEnd {
        CANCEL,
        BREAKS_A_RULE,
        BREAKS_A_RULE_AND_CANCELS;

        void of(Flow.Subscription subscription) {
            if (this != CANCEL) {
                subscription.request(0);
            }
            if (this != BREAKS_A_RULE) {
                subscription.cancel();
            }
        }
    }

    /** Keeps its subscription. */
    private static final class Keeping implements Flow.Subscriber<String> {
        private final @Nullable StreamEnd asItBegins;
        Flow.@Nullable Subscription subscription;

        Keeping(@Nullable StreamEnd asItBegins) {
            this.asItBegins = asItBegins;
        }

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            given.request(2);
            if (asItBegins != null) {
                asItBegins.of(given);
            }
        }

        @Override
        public void onNext(String item) {}

        @Override
        public void onError(Throwable thrown) {}

        @Override
        public void onComplete() {}
    }

    /** Never publishes an item. */
    private static final class Endless implements Flow.Publisher<String> {
        @Override
        public void subscribe(Flow.Subscriber<? super String> subscriber) {
            subscriber.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long items) {}

                @Override
                public void cancel() {}
            });
        }
    }

    private final HandPlatform hand = new HandPlatform();
    private final List<Client> clients = new ArrayList<>();
    private final Client client = client(false);
    private final Remote remote = client.create(Remote.class, "peer", 1);

    /** Holds what the call may keep, which is its argument, the call in which it was made, and its connections. */
    private final List<WeakReference<Object>> held = new ArrayList<>();

    private Client client(boolean isClassic) {
        Client.Builder builder = Client.builder();
        if (isClassic) {
            builder.classic();
        }
        Client made = builder.platform(hand)
                .eventLoops(1)
                .connections(1, 1)
                .keepAlive(Duration.ofMinutes(10))
                .connectTimeout(Duration.ofMinutes(30))
                .build();
        clients.add(made);
        return made;
    }

    @BeforeEach
    void collects() {
        Heap.assumeCollected();
    }

    @AfterEach
    void nothingIsLeft() {
        clients.forEach(client -> client.core().end());
        close();
        for (Client each : clients) {
            assertThat(each.core().ledger().audit()).isEmpty();
        }
        assertThat(hand.heldBytes()).isZero();
    }

    private void close() {
        for (EmbeddedChannel channel : hand.opened) {
            hand.reads(channel, true);
            channel.close();
            hand.settle(channel);
            channel.releaseOutbound();
        }
        hand.opened.clear();
    }

    private EmbeddedChannel channel() {
        return hand.opened.get(hand.opened.size() - 1);
    }

    private void settle() {
        List.copyOf(hand.opened).forEach(hand::settle);
    }

    private void pass(int millis) {
        hand.ticker.advance(millis, TimeUnit.MILLISECONDS);
        settle();
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        hand.read(channel(), all, 0, all.length);
    }

    /** Opens a connection that has been there for a second and has no call. */
    private void open() {
        CompletableFuture<String> first = remote.call(new byte[1]);
        settle();
        send(RawPeer.preface());
        send(RawPeer.frame(Wire.DICTIONARY, 0, Unpooled.EMPTY_BUFFER));
        send(RawPeer.frame(Wire.REPLY, requests().get(0), RawPeer.text("first")));
        assertThat(first).isCompletedWithValue("first");
        held.add(new WeakReference<>(channel().pipeline().get(ClientConnection.class)));
        pass(1_000);
    }

    /** @return the ids of requests that the client has sent since the last look */
    private List<Integer> requests() {
        ByteBuf said = Unpooled.wrappedBuffer(HandPlatform.written(channel()));
        if (said.readableBytes() > Wire.PREFACE_BYTES
                && said.getByte(0) == RawPeer.preface().getByte(0)) {
            said.skipBytes(Wire.PREFACE_BYTES);
        }
        List<Integer> ids = new ArrayList<>();
        while (said.isReadable()) {
            int length = Varint.readLength(said, Wire.MAX_FRAME_BYTES, "a frame");
            int type = said.readUnsignedByte() & Wire.TYPE_MASK;
            int id = said.readInt();
            said.skipBytes(length - Wire.HEAD_BYTES);
            if (type == Wire.REQUEST) {
                ids.add(id);
            }
        }
        return ids;
    }

    /** Makes the call within a call that a handler runs. */
    private CompletableFuture<String> made(State state) {
        TimedContext maker = new TimedContext(
                hand.ticker.nanoTime() + TimeUnit.SECONDS.toNanos(10), Metadata.EMPTY, null, hand.ticker);
        held.add(new WeakReference<>(maker));
        List<CompletableFuture<String>> call = new ArrayList<>();
        CurrentCall.runIn(maker, () -> call.add(call(state)));
        settle();
        return call.get(0);
    }

    private CompletableFuture<String> call(State state) {
        if (state.name().startsWith("UPLOAD")) {
            Endless items = new Endless();
            held.add(new WeakReference<>(items));
            return remote.takes(items);
        }
        byte[] bytes = new byte[BYTES];
        held.add(new WeakReference<>(bytes));
        if (state == State.CLASSIC_WAITS) {
            return pausing().call(bytes);
        }
        if (state == State.CLASSIC_SENT) {
            return client(true).create(Classic.class, "peer", 2).call(bytes);
        }
        return state.name().matches("HEDGED.*|BOTH.*") ? remote.hedged(bytes) : remote.call(bytes);
    }

    private void goAway() {
        channel().config().setAutoRead(true);
        send(RawPeer.frame(Wire.GOAWAY, 0, Unpooled.EMPTY_BUFFER));
        settle();
    }

    /**
     * Returns the calls of a client that has just failed to connect, and that tries again in a moment. The classic wire
     * has no greeting.
     */
    private Classic pausing() {
        Classic calls = client(true).create(Classic.class, "peer", 2);
        CompletableFuture<String> first = calls.call(new byte[1]);
        settle();
        channel().close();
        settle();
        assertThat(first).isCompletedExceptionally();
        return calls;
    }

    private CompletableFuture<String> callIn(State state) {
        if (state.ordinal() >= State.WAITS_AGAIN.ordinal()) {
            open();
        }
        boolean isUnread = state == State.UNSENT || state == State.WAITS_FOR_THE_NEXT;
        if (isUnread) {
            hand.reads(channel(), false);
        }
        CompletableFuture<String> call = made(state);
        if (state.name().startsWith("BOTH")) {
            pass(50);
            settle();
        }
        switch (state) {
            case WAITS_AGAIN -> {
                assertThat(requests()).hasSize(1);
                channel().close();
                settle();
            }
            case WAITS_FOR_THE_NEXT -> goAway();
            case REPLY_IN_PARTS -> {
                ByteBuf part = Unpooled.wrappedBuffer(new byte[BYTES]);
                send(RawPeer.frame(Wire.REPLY | Wire.MORE, requests().get(0), part));
            }
            case SENT, HEDGED_SENT, UPLOAD_SENT -> assertThat(requests()).hasSize(1);
            case BOTH_SENT -> assertThat(requests()).hasSize(2);
            case UNSENT -> assertThat(requests()).isEmpty();
            default -> {}
        }
        assertThat(call).isNotDone();
        return call;
    }

    private int waitingCalls() {
        return client.core().address("peer", 1).waitingCalls()
                + clients.get(clients.size() - 1).core().address("peer", 2).waitingCalls();
    }

    private long requestBytes() {
        return clients.stream()
                .mapToLong(each -> each.core().ledger().held(Resource.REQUEST_BYTES))
                .sum();
    }

    private static Stream<Arguments> ends() {
        return Stream.of(State.values())
                .flatMap(state -> Stream.of(End.values()).map(end -> Arguments.of(state, end)));
    }

    @ParameterizedTest
    @MethodSource("ends")
    void nothingIsHeldByAFutureThatItsCallerEndsAndKeeps(State state, End end) {
        CompletableFuture<String> kept = callIn(state);
        assertThat(waitingCalls() > 0).isEqualTo(state.isWaiting());
        end.of(kept);
        settle();
        if (state.isWaiting()) {
            assertThat(waitingCalls()).isZero();
            assertThat(requestBytes()).isZero();
        }
        pass(11_000);
        expectNothingHeld();
        assertThat(kept).isDone();
    }

    private static Stream<Arguments> streamEnds() {
        return Stream.of(StreamState.values())
                .flatMap(state -> Stream.of(StreamEnd.values()).map(end -> Arguments.of(state, end)));
    }

    @ParameterizedTest
    @MethodSource("streamEnds")
    void nothingIsHeldByASubscriptionThatItsSubscriberEndsAndKeeps(StreamState state, StreamEnd end) {
        if (state != StreamState.BEGINS && state != StreamState.WAITS) {
            open();
        }
        boolean isUnread = state == StreamState.UNSENT || state == StreamState.WAITS_FOR_THE_NEXT;
        if (isUnread) {
            hand.reads(channel(), false);
        }
        Keeping kept = new Keeping(state == StreamState.BEGINS ? end : null);
        subscribe(kept);
        if (state == StreamState.WAITS_FOR_THE_NEXT) {
            goAway();
        } else if (state == StreamState.ITEM_IN_PARTS) {
            ByteBuf part = Unpooled.wrappedBuffer(new byte[BYTES]);
            send(RawPeer.frame(Wire.ITEM | Wire.MORE, requests().get(0), part));
        }
        assertThat(waitingCalls() > 0).isEqualTo(state.name().startsWith("WAITS"));
        if (state != StreamState.BEGINS) {
            end.of(Objects.requireNonNull(kept.subscription));
        }
        settle();
        assertThat(waitingCalls()).isZero();
        if (state.name().startsWith("WAITS")) {
            assertThat(requestBytes()).isZero();
        }
        pass(11_000);
        expectNothingHeld();
        assertThat(kept.subscription).isNotNull();
    }

    private void subscribe(Keeping subscriber) {
        TimedContext maker = new TimedContext(
                hand.ticker.nanoTime() + TimeUnit.SECONDS.toNanos(10), Metadata.EMPTY, null, hand.ticker);
        held.add(new WeakReference<>(maker));
        byte[] bytes = new byte[BYTES];
        held.add(new WeakReference<>(bytes));
        CurrentCall.runIn(maker, () -> remote.brings(bytes).subscribe(subscriber));
        settle();
    }

    /** Closes the connections and asserts that nothing is held after that. */
    private void expectNothingHeld() {
        close();
        assertThat(waitingCalls()).isZero();
        assertThat(requestBytes()).isZero();
        await().pollDelay(Duration.ZERO).untilAsserted(() -> {
            System.gc();
            assertThat(held.stream()
                            .map(WeakReference::get)
                            .filter(Objects::nonNull)
                            .map(Object::getClass))
                    .isEmpty();
        });
    }
}
