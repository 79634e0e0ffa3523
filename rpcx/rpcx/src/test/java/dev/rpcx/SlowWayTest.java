package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.embedded.EmbeddedChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests large messages over a connection that carries 125 kB per second, under a simulated clock. */
@Timeout(60)
class SlowWayTest {
    private static final int STEPS_PER_SECOND = 4;
    private static final int STEP_BYTES = 125_000 / STEPS_PER_SECOND;

    /** So many bytes stand in the socket before it takes no more. */
    private static final int SOCKET_BYTES = 64 * 1024;

    private static final int MEBIBYTE = 1 << 20;

    /** If so many messages are sent at once, each gets less than the server asks of a message that has begun. */
    private static final int MANY = 16;

    @RPCXServer("slow")
    static final class Service {
        final List<Integer> lengths = new ArrayList<>();

        @Method
        int length(byte[] bytes) {
            lengths.add(bytes.length);
            return bytes.length;
        }

        @Method
        CompletionStage<Integer> total(Flow.Publisher<String> items) {
            Total total = new Total();
            items.subscribe(total);
            return total.result;
        }

        @Method
        Flow.Publisher<String> brings(byte[] bytes) {
            return new Items(2, Integer.toString(bytes.length));
        }
    }

    @RPCXClient(remoteServerName = "slow")
    interface Remote {
        @Method(timeoutMillis = 3_600_000)
        CompletableFuture<Integer> length(byte[] bytes);

        @Method(value = "length", timeoutMillis = 5_000)
        CompletableFuture<Integer> lengthSoon(byte[] bytes);

        CompletableFuture<Integer> total(Flow.Publisher<String> items);

        Flow.Publisher<String> brings(byte[] bytes);
    }

    /** Publishes one item so many times. */
    private record Items(int count, String item) implements Flow.Publisher<String> {
        @Override
        public void subscribe(Flow.Subscriber<? super String> subscriber) {
            subscriber.onSubscribe(new Flow.Subscription() {
                private int left = count;

                @Override
                public void request(long items) {
                    for (long i = 0; i < items && left > 0; i++) {
                        left--;
                        subscriber.onNext(item);
                        if (left == 0) {
                            subscriber.onComplete();
                        }
                    }
                }

                @Override
                public void cancel() {
                    left = 0;
                }
            });
        }
    }

    /** Adds up the lengths of the items, and asks for one item at a time. */
    private static final class Total implements Flow.Subscriber<String> {
        final CompletableFuture<Integer> result = new CompletableFuture<>();
        private Flow.@Nullable Subscription subscription;
        private int length;

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            given.request(1);
        }

        @Override
        public void onNext(String item) {
            length += item.length();
            Objects.requireNonNull(subscription).request(1);
        }

        @Override
        public void onError(Throwable thrown) {
            result.completeExceptionally(thrown);
        }

        @Override
        public void onComplete() {
            result.complete(length);
        }
    }

    private final HandPlatform hand = new HandPlatform();
    private final Service service = new Service();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .platform(hand)
            .build()
            .start();
    private final Client client = Client.builder()
            .platform(hand)
            .eventLoops(1)
            .connections(1, 1)
            .keepAlive(Duration.ofMinutes(1))
            .build();
    private final Remote remote = client.create(Remote.class, "peer", 1);
    private final List<CompletableFuture<?>> calls = new ArrayList<>();
    private final ByteBuf way = Unpooled.buffer();
    private final EmbeddedChannel served = hand.accept();
    private @Nullable EmbeddedChannel channel;

    @BeforeEach
    void connect() {
        CompletableFuture<Integer> first = added(remote.length(new byte[1]));
        channel = hand.opened.get(0);
        channel().pipeline().addFirst(new ChannelDuplexHandler() {
            @Override
            public void flush(ChannelHandlerContext ctx) {
                ctx.flush();
                fill();
            }
        });
        hand.settle(channel());
        fill();
        pass(2);
        assertThat(first).isCompletedWithValue(1);
        service.lengths.clear();
    }

    @AfterEach
    void nothingIsLeft() {
        hand.end(client, channel(), calls);
        served.close();
        hand.handleAll(served);
        served.releaseOutbound();
        hand.pass(served, 2, TimeUnit.HOURS);
        assertThat(server.core().ledger().audit()).isEmpty();
        assertThat(hand.heldBytes()).isZero();
    }

    private EmbeddedChannel channel() {
        return Objects.requireNonNull(channel);
    }

    private <T> CompletableFuture<T> added(CompletableFuture<T> call) {
        calls.add(call);
        if (channel != null) {
            hand.settle(channel);
        }
        return call;
    }

    /** Puts what the client has written into the client's socket. */
    private void fill() {
        way.writeBytes(HandPlatform.written(channel()));
        ChannelOutboundBuffer queue = channel().unsafe().outboundBuffer();
        if (queue != null) {
            queue.setUserDefinedWritability(1, way.readableBytes() < SOCKET_BYTES);
        }
    }

    private void step() {
        byte[] bytes = new byte[Math.min(STEP_BYTES, way.readableBytes())];
        way.readBytes(bytes);
        way.discardReadBytes();
        hand.read(served, bytes, 0, bytes.length);
        hand.handleAll(served);
        byte[] answers = HandPlatform.written(served);
        hand.read(channel(), answers, 0, answers.length);
        fill();
        hand.pass(channel(), TimeUnit.SECONDS.toMillis(1) / STEPS_PER_SECOND, TimeUnit.MILLISECONDS);
        hand.settle(served);
    }

    private void pass(int seconds) {
        for (int i = 0; i < seconds * STEPS_PER_SECOND; i++) {
            step();
        }
    }

    /** Returns how many seconds pass until all of them have ended. */
    private int passUntilAllAreDone(List<? extends CompletableFuture<?>> all, int mostSeconds) {
        int seconds = 0;
        while (seconds < mostSeconds && !all.stream().allMatch(CompletableFuture::isDone)) {
            pass(1);
            seconds++;
        }
        return seconds;
    }

    private List<CompletableFuture<Integer>> lengths(int count, int bytes) {
        List<CompletableFuture<Integer>> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            all.add(added(remote.length(new byte[bytes])));
        }
        return all;
    }

    @Test
    void manyLargeRequestsAtOnceAreServedOneAfterTheOther() {
        List<CompletableFuture<Integer>> all = lengths(MANY, MEBIBYTE);
        int first = passUntilAllAreDone(all.subList(0, 1), 60);
        passUntilAllAreDone(all, 200);
        assertThat(all).allSatisfy(call -> assertThat(call).isCompletedWithValue(MEBIBYTE));
        assertThat(first).isLessThanOrEqualTo(10);
    }

    @Test
    void manyStreamsOfLargeItemsAtOnceEndWell() {
        List<CompletableFuture<Integer>> all = new ArrayList<>();
        for (int i = 0; i < MANY; i++) {
            all.add(added(remote.total(new Items(2, "x".repeat(MEBIBYTE)))));
        }
        passUntilAllAreDone(all, 400);
        assertThat(all).allSatisfy(call -> assertThat(call).isCompletedWithValue(2 * MEBIBYTE));
    }

    @Test
    void aMessageWaitsForNoneThatIsMuchLarger() {
        List<CompletableFuture<Integer>> all = lengths(MANY, MEBIBYTE);
        CompletableFuture<Integer> middle = added(remote.length(new byte[100_000]));
        CompletableFuture<Integer> small = added(remote.length(new byte[20_000]));
        CompletableFuture<Integer> least = added(remote.length(new byte[10]));
        assertThat(passUntilAllAreDone(List.of(least, small, middle), 60)).isLessThanOrEqualTo(8);
        passUntilAllAreDone(all, 200);
        assertThat(all).allSatisfy(call -> assertThat(call).isCompletedWithValue(MEBIBYTE));
    }

    @Test
    void aRequestThatHasNotBegunInItsTimeWasNotExecutedAndWaitsNoMore() {
        CompletableFuture<Integer> first = added(remote.length(new byte[MEBIBYTE]));
        CompletableFuture<Integer> late = added(remote.lengthSoon(new byte[MEBIBYTE - 1]));
        CompletableFuture<Integer> cancelled = added(remote.length(new byte[MEBIBYTE - 2]));
        CompletableFuture<Integer> last = added(remote.length(new byte[MEBIBYTE - 3]));
        pass(1);
        cancelled.cancel(true);
        hand.settle(channel());
        pass(5);
        RPCXException why = (RPCXException) Objects.requireNonNull(late.handle((value, thrown) -> thrown)
                .thenApply(thrown -> thrown instanceof CompletionException e ? e.getCause() : thrown)
                .getNow(null));
        assertThat(why.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
        assertThat(why.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        assertThat(first).isNotDone();
        assertThat(passUntilAllAreDone(List.of(first, last), 60)).isLessThanOrEqualTo(15);
        assertThat(service.lengths).containsExactly(MEBIBYTE, MEBIBYTE - 3);
    }

    @Test
    void whatIsWantedOfAStreamFollowsItsRequestThatWaits() {
        lengths(1, MEBIBYTE);
        List<List<String>> seen = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            List<String> items = new ArrayList<>();
            seen.add(items);
            remote.brings(new byte[MEBIBYTE]).subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription subscription) {
                    subscription.request(2);
                }

                @Override
                public void onNext(String item) {
                    items.add(item);
                }

                @Override
                public void onError(Throwable thrown) {
                    items.add(thrown.toString());
                }

                @Override
                public void onComplete() {
                    items.add("end");
                }
            });
            hand.settle(channel());
        }
        pass(20);
        String length = Integer.toString(MEBIBYTE);
        assertThat(seen.get(0)).as("it does not wait for those behind it").containsExactly(length, length, "end");
        pass(20);
        assertThat(seen).allSatisfy(items -> assertThat(items).containsExactly(length, length, "end"));
    }
}
