package dev.rpcx.internal.call;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.HandPlatform;
import dev.rpcx.RPCXException;
import dev.rpcx.codec.Codec;
import dev.rpcx.codec.Codecs;
import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.client.BoundPublisher;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireConnection;
import dev.rpcx.internal.wire.WireError;
import dev.rpcx.schema.Field;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.embedded.EmbeddedChannel;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicReference;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests the items of one call that go out: what the publisher is asked for, what is sent, and what is held meanwhile.
 */
@Timeout(60)
class StreamSenderTest {
    private static final int ALL_BYTES = 400 * 1024;
    private static final int WINDOW_BYTES = 64 * 1024;

    /** Capacity of the smallest item's buffer. */
    private static final int FIRST_BYTES = 256;

    private static final int ID = 5 << 16;
    private static final int MAX_BYTES = 100_000;

    private final Ledger ledger = new Ledger(
            "ledger under test",
            Map.of(Resource.ITEM_BYTES_OUT, (long) ALL_BYTES, Resource.STREAMS, 2L),
            Map.of(),
            Integer.MAX_VALUE);
    private final Account account = Objects.requireNonNull(ledger.open(null));
    private final EmbeddedChannel channel = new EmbeddedChannel();
    private final WireConnection connection = new WireConnection(channel, account) {
        @Override
        public void onPreface(int version) {}

        @Override
        public void onFrame(int head, int id, ByteBuf payload) {}

        @Override
        public int maxBytesTaken() {
            return MAX_BYTES;
        }

        @Override
        public void beforeRead() {}

        @Override
        public void onClosed(String why) {}
    };

    private final List<String> seen = new ArrayList<>();
    private final StreamSender sender = sender();

    StreamSenderTest() {
        channel.pipeline().addLast(connection);
    }

    private StreamSender sender() {
        return sender(Runnable::run);
    }

    private StreamSender sender(@Nullable Executor place) {
        return sender(StreamReceiverTest.TEXT, place);
    }

    private StreamSender sender(Codec<Object> codec, @Nullable Executor place) {
        StreamSender.Failed failed = new StreamSender.Failed() {
            @Override
            public void onFailure(Throwable thrown) {
                seen.add("failed " + thrown.getMessage());
            }

            @Override
            public void tooLarge(RPCXException why) {
                seen.add("too large " + why.getMessage());
            }
        };
        return new StreamSender(connection, ID, codec, Wire.END, failed, () -> seen.add("last left"), place);
    }

    private class Subscription implements Flow.Subscription {
        @Override
        public void request(long items) {
            seen.add("request " + items);
        }

        @Override
        public void cancel() {
            seen.add("cancel");
        }
    }

    /** Returns what has been seen since the last call of this method. */
    private List<String> seen() {
        List<String> copy = List.copyOf(seen);
        seen.clear();
        return copy;
    }

    /** Returns what has been sent since the last call of this method, with one text for each frame. */
    private List<String> sent() {
        channel.runPendingTasks();
        ByteBuf all = Unpooled.wrappedBuffer(HandPlatform.written(channel));
        List<String> frames = new ArrayList<>();
        while (all.isReadable()) {
            int length = (int) Varint.read(all);
            int head = all.readUnsignedByte();
            assertThat(all.readInt()).isEqualTo(ID);
            ByteBuf payload = all.readSlice(length - Wire.HEAD_BYTES);
            String text = payload.readableBytes() > 20
                    ? payload.readableBytes() + " bytes"
                    : payload.toString(StandardCharsets.UTF_8);
            frames.add((switch (head & Wire.TYPE_MASK) {
                                case Wire.ITEM -> "ITEM ";
                                case Wire.PART -> "PART ";
                                case Wire.END -> "END ";
                                case Wire.ERROR -> "ERROR ";
                                default -> head + " ";
                            }
                            + ((head & Wire.MORE) != 0 ? "MORE " : "")
                            + text)
                    .trim());
        }
        return frames;
    }

    /** Returns the error that has been sent since the last check, and checks that nothing else was sent. */
    private RPCXException sentError() {
        channel.runPendingTasks();
        ByteBuf frame = Unpooled.wrappedBuffer(HandPlatform.written(channel));
        assertThat((int) Varint.read(frame)).isEqualTo(frame.readableBytes());
        assertThat(frame.readUnsignedByte()).isEqualTo((short) Wire.ERROR);
        assertThat(frame.readInt()).isEqualTo(ID);
        return WireError.read(frame);
    }

    private static ByteBuf error(String text, int capacity) {
        ByteBuf error = Unpooled.buffer(capacity);
        WireError.write(error, new RPCXException(RPCXException.Code.HANDLER_FAILED, text));
        assertThat(error.capacity()).isEqualTo(capacity);
        return error;
    }

    /** Charges others for all that items may still hold. */
    private Charge takeAllRoom() {
        Charge others = account.charge(Resource.ITEM_BYTES_OUT);
        while (others.add(Charge.STEP_BYTES)) {}
        return others;
    }

    private long held() {
        return ledger.held(Resource.ITEM_BYTES_OUT);
    }

    private void subscribe() {
        subscribe(sender);
    }

    private void subscribe(StreamSender to) {
        to.subscribeTo(subscriber -> subscriber.onSubscribe(new Subscription()), () -> {});
    }

    /** A handler that acts like a socket which is full. */
    private final class Full extends ChannelOutboundHandlerAdapter {
        private boolean takesOnce;

        @Override
        public void flush(ChannelHandlerContext ctx) {
            if (takesOnce) {
                takesOnce = false;
                ctx.flush();
            }
        }

        /** Takes what was written before, and is full again with what is written then. */
        void takeOnce() {
            takesOnce = true;
            channel.flush();
            assertThat(channel.isWritable()).isFalse();
            channel.runPendingTasks();
        }
    }

    /** Makes the socket take nothing until the returned task is run. */
    private Runnable stopReading() {
        return stopReading(new Full());
    }

    private Runnable stopReading(Full stopped) {
        channel.config().setWriteBufferWaterMark(new WriteBufferWaterMark(1, 2));
        channel.pipeline().addFirst(stopped);
        channel.write(Unpooled.buffer().writeZero(100));
        channel.flush();
        assertThat(channel.isWritable()).isFalse();
        return () -> {
            channel.pipeline().remove(stopped);
            channel.flush();
            channel.runPendingTasks();
            ByteBuf first = channel.readOutbound();
            assertThat(first.readableBytes()).isEqualTo(100);
            first.release();
        };
    }

    @AfterEach
    void end() {
        sender.cancel();
        connection.close("the test is over");
        channel.runPendingTasks();
        channel.finishAndReleaseAll();
        assertThat(held()).isZero();
        assertThat(ledger.held(Resource.STREAMS)).isZero();
        account.close();
        assertThat(ledger.audit()).isEmpty();
    }

    // ---- what the publisher is asked for

    @Test
    void aPublisherIsAskedForNothingBeforeThereIsCredit() {
        subscribe();
        assertThat(seen()).isEmpty();
        assertThat(ledger.held(Resource.STREAMS)).isEqualTo(1);
        sender.onCredit(3);
        assertThat(seen()).containsExactly("request 1");
    }

    /** This is also true of a publisher that ignores what its subscriber throws. */
    @Test
    @SuppressWarnings("NullAway") // a publisher can do this all the same
    void aPublisherOfACallThatGivesNoSubscriptionHasFailedToo() {
        Flow.Publisher<Object> quiet = subscriber -> {
            try {
                subscriber.onSubscribe(null);
            } catch (NullPointerException e) {
                // nobody sees this exception
            }
        };
        sender.subscribeTo(new BoundPublisher(quiet, null), () -> {});
        channel.runPendingTasks();
        assertThat(seen()).contains("failed a publisher gave no subscription (expected: one)");
    }

    @Test
    @SuppressWarnings("NullAway") // a publisher can do this all the same
    void aPublisherThatGivesNoSubscriptionHasFailed() {
        sender.subscribeTo(subscriber -> subscriber.onSubscribe(null), () -> {});
        channel.runPendingTasks();
        assertThat(seen()).contains("failed a publisher gave no subscription (expected: one)");
    }

    @Test
    void creditThatCameBeforeThePublisherIsAskedForWithIt() {
        sender.onCredit(3);
        subscribe();
        assertThat(seen()).containsExactly("request 1");
    }

    @Test
    void theFirstItemTellsHowManyFitAtATime() {
        subscribe();
        sender.onCredit(Long.MAX_VALUE);
        sender.onCredit(Long.MAX_VALUE);
        assertThat(seen()).containsExactly("request 1");
        sender.onNext("a");
        assertThat(seen()).as("as the first may have been an exception").containsExactly("request 1");
        sent();
        long most = 0;
        for (int i = 0; i < 2000; i++) {
            sender.onNext("a");
            channel.runPendingTasks();
            for (String asked : seen()) {
                most = Math.max(most, Long.parseLong(asked.substring("request ".length())));
            }
        }
        assertThat(most * FIRST_BYTES).isBetween((long) WINDOW_BYTES / 2, (long) WINDOW_BYTES);
    }

    @Test
    void largeItemsAreAskedForOneByOne() {
        subscribe();
        sender.onCredit(10);
        for (int i = 0; i < 10; i++) {
            assertThat(seen()).containsExactly("request 1");
            sender.onNext("a".repeat(40_000));
            assertThat(seen()).as("while it waits").isEmpty();
            assertThat(sent()).hasSize(3);
        }
        assertThat(seen()).as("the credit is used up").isEmpty();
        assertThat(held()).isZero();
    }

    @Test
    void aPublisherIsAskedForNoMoreThanCredit() {
        subscribe();
        sender.onCredit(2);
        sender.onNext("a");
        sent();
        sender.onNext("b");
        assertThat(sent()).containsExactly("ITEM b");
        assertThat(seen()).containsExactly("request 1", "request 1");
        sender.onCredit(1);
        assertThat(seen()).containsExactly("request 1");
    }

    @Test
    void aPeerThatDoesNotReadStopsThePublisher() {
        subscribe();
        Runnable readAgain = stopReading();
        sender.onCredit(1_000_000);
        int made = 0;
        long asked = 0;
        while (true) {
            for (String next : seen()) {
                asked += Long.parseLong(next.substring("request ".length()));
            }
            if (asked == 0) {
                break;
            }
            asked--;
            sender.onNext("a".repeat(1000));
            channel.runPendingTasks();
            made++;
        }
        assertThat(made).isGreaterThan(10);
        assertThat(held()).isBetween((long) WINDOW_BYTES / 2, (long) 2 * WINDOW_BYTES);
        readAgain.run();
        assertThat(sent()).hasSize(made).allMatch("ITEM 1000 bytes"::equals);
        assertThat(held()).isZero();
        assertThat(seen()).as("asked again").hasSize(1);
    }

    @Test
    void aSizeThatShrinksIsBelievedSlowly() {
        subscribe();
        sender.onCredit(1_000);
        sender.onNext("a");
        assertThat(seen()).as("as if it were half a window").containsExactly("request 1", "request 1");
        sender.onNext("a");
        assertThat(seen()).as("as if each were a quarter").containsExactly("request 3");
        sent();
        sender.onNext("a".repeat(20_000));
        sender.onNext("a");
        sender.onNext("a");
        sent();
        sender.onCredit(1);
        assertThat(seen()).as("as if each were a quarter of the large one").containsExactly("request 7");
    }

    @Test
    void theFirstCreditAloneIsToldToWhoWantsToKnow() {
        sender.onFirstCredit(() -> seen.add("taken"));
        subscribe();
        assertThat(seen()).isEmpty();
        sender.onCredit(1);
        assertThat(seen()).containsExactly("taken", "request 1");
        sender.onNext("a");
        sent();
        sender.onCredit(1);
        assertThat(seen()).containsExactly("request 1");
    }

    /** If the publisher runs on the event loop, the loop's other connections are served too. */
    @Test
    void aPublisherThatMakesAllItIsAskedForAtOnceGivesTheEventLoopBackNowAndThen() {
        StreamSender here = sender((Executor) null);
        int[] times = {0};
        here.subscribeHere(to -> to.onSubscribe(new Subscription() {
            @Override
            public void request(long items) {
                assertThat(items).isEqualTo(1);
                times[0]++;
                to.onNext("a".repeat(40_000));
                assertThat(sent()).hasSize(3);
            }
        }));
        here.onCredit(300);
        assertThat(times[0]).isBetween(1, 200);
        channel.runPendingTasks();
        assertThat(times[0]).isEqualTo(300);
        here.cancel();
        assertThat(seen()).containsExactly("cancel");
    }

    // ---- what is sent

    @Test
    void itemsAndTheEndAreSentInOrder() {
        subscribe();
        sender.onCredit(2);
        sender.onNext("a");
        assertThat(sent()).containsExactly("ITEM a");
        sender.onNext("x".repeat(Wire.MAX_PAYLOAD_BYTES + 1));
        sender.onComplete();
        assertThat(seen()).containsExactly("request 1", "request 1");
        assertThat(sent()).containsExactly("ITEM MORE " + Wire.MAX_PAYLOAD_BYTES + " bytes", "PART x", "END");
        assertThat(seen()).containsExactly("last left");
        assertThat(held()).isZero();
        assertThat(ledger.held(Resource.STREAMS)).isZero();
        sender.cancel();
        assertThat(seen()).isEmpty();
    }

    @Test
    void anErrorEndsAStreamAsItsLastMessage() {
        subscribe();
        sender.onCredit(1);
        sender.onNext("a");
        sender.addLast(Wire.ERROR, Unpooled.copiedBuffer("why", StandardCharsets.UTF_8));
        sender.addLast(Wire.ERROR, Unpooled.EMPTY_BUFFER);
        sender.onComplete();
        sender.onNext("b");
        assertThat(sent()).containsExactly("ITEM a", "ERROR why");
        assertThat(seen()).containsExactly("request 1", "last left");
    }

    @Test
    void anItemPaysForItselfUntilItHasBeenSent() {
        subscribe();
        sender.onCredit(2);
        sender.onNext("a".repeat(10_000));
        assertThat(held()).isBetween(10_128L, 10_128L + 16_384);
        sent();
        assertThat(held()).isZero();
        assertThat(sender.body.capacity()).isLessThanOrEqualTo(Outbound.MAX_SMALL_BYTES);
    }

    /** The stream may wait for a year, and then nothing of it is charged. */
    @Test
    void aStreamThatWaitsForCreditKeepsNoBufferOfItsLastItem() {
        subscribe();
        sender.onCredit(1);
        sender.onNext("a".repeat(3_000));
        sent();
        assertThat(held()).isZero();
        assertThat(sender.body.capacity()).isLessThanOrEqualTo(Outbound.FIRST_BYTES);
    }

    @Test
    void aSmallItemBehindALargeOneHoldsNoLargeBuffer() {
        subscribe();
        sender.onCredit(2);
        sender.onNext("a".repeat(90_000));
        sent();
        Runnable readAgain = stopReading();
        sender.onNext("b");
        channel.runPendingTasks();
        assertThat(sender.body.capacity()).isLessThanOrEqualTo(Outbound.MAX_SMALL_BYTES);
        assertThat(held()).isBetween(1L, 4096L);
        readAgain.run();
        assertThat(sent()).containsExactly("ITEM b");
    }

    @Test
    void aSmallItemThatWaitedBehindALargeOneHoldsNoLargeBuffer() {
        subscribe();
        sender.onCredit(9);
        Full socket = new Full();
        Runnable readAgain = stopReading(socket);
        sender.onNext("a".repeat(10_000));
        channel.runPendingTasks();
        sender.onNext("b");
        channel.runPendingTasks();
        assertThat(sender.body.readableBytes()).as("the large one waits").isEqualTo(10_000);
        socket.takeOnce();
        assertThat(sender.body.readableBytes()).as("the small one waits").isEqualTo(1);
        assertThat(sender.body.capacity()).isLessThanOrEqualTo(FIRST_BYTES);
        assertThat(held()).isBetween(1L, 4096L);
        readAgain.run();
        assertThat(sent()).containsExactly("ITEM 10000 bytes", "ITEM b");
        assertThat(held()).isZero();
    }

    @Test
    void anItemTakesThePlaceOfTheOneBeforeIt() {
        subscribe();
        sender.onCredit(9);
        sender.onNext("a".repeat(200));
        sent();
        Runnable readAgain = stopReading();
        sender.onNext("b".repeat(200));
        channel.runPendingTasks();
        assertThat(sender.body.readableBytes()).isEqualTo(200);
        assertThat(sender.body.capacity()).isLessThanOrEqualTo(FIRST_BYTES);
        readAgain.run();
        assertThat(sent()).containsExactly("ITEM 200 bytes");
    }

    /**
     * With its header the buffer is not longer than a power of two, so that parts of the heap hold a whole number of
     * buffers.
     */
    @Test
    void theBufferOfALargeItemFitsAPartOfTheHeap() {
        subscribe();
        sender.onCredit(9);
        Runnable readAgain = stopReading();
        sender.onNext("a".repeat(50_000));
        channel.runPendingTasks();
        assertThat(sender.body.readableBytes()).isEqualTo(50_000);
        assertThat(sender.body.capacity()).isLessThanOrEqualTo(64 * 1024 - 16);
        readAgain.run();
        sent();
    }

    // ---- what goes wrong

    @Test
    void aPublisherThatCannotSubscribeFailsTheStream() {
        sender.subscribeTo(
                subscriber -> {
                    seen.add("subscribe");
                    assertThat(ledger.held(Resource.STREAMS)).isEqualTo(1);
                    throw new IllegalStateException("not today");
                },
                () -> seen.add("begins"));
        assertThat(seen()).containsExactly("begins", "subscribe", "failed not today");
    }

    @Test
    void aPublisherThatBlocksCountsUntilItHasGivenItsThreadBack() {
        ArrayDeque<Runnable> elsewhere = new ArrayDeque<>();
        StreamSender blocked = sender(elsewhere::add);
        blocked.subscribeTo(
                subscriber -> {
                    assertThat(ledger.held(Resource.STREAMS)).isEqualTo(1);
                    // the caller gives up while the publisher blocks
                    blocked.cancel();
                    assertThat(ledger.held(Resource.STREAMS)).isEqualTo(1);
                    subscriber.onSubscribe(new Subscription());
                    subscriber.onSubscribe(new Subscription());
                    assertThat(ledger.held(Resource.STREAMS)).isEqualTo(1);
                },
                () -> seen.add("begins"));
        assertThat(ledger.held(Resource.STREAMS)).isEqualTo(1);
        assertThat(seen()).isEmpty();
        elsewhere.remove().run();
        assertThat(seen()).containsExactly("begins", "cancel", "cancel");
        assertThat(ledger.held(Resource.STREAMS)).isZero();
        assertThat(elsewhere).isEmpty();
    }

    @Test
    void oneThatNeverSaysAnythingCountsUntilItsCallIsOver() {
        sender.subscribeTo(subscriber -> {}, () -> {});
        assertThat(ledger.held(Resource.STREAMS)).isEqualTo(1);
        sender.cancel();
        assertThat(ledger.held(Resource.STREAMS)).isZero();
    }

    @Test
    void aPublisherWhoseCallIsOverIsNotSubscribedTo() {
        ArrayDeque<Runnable> elsewhere = new ArrayDeque<>();
        StreamSender late = sender(elsewhere::add);
        late.subscribeTo(subscriber -> seen.add("subscribe"), () -> seen.add("begins"));
        late.cancel();
        elsewhere.remove().run();
        assertThat(seen()).containsExactly("begins");
        assertThat(ledger.held(Resource.STREAMS)).isZero();
        late.subscribeTo(subscriber -> seen.add("subscribe"), () -> seen.add("begins"));
        late.subscribeHere(subscriber -> seen.add("subscribe"));
        assertThat(seen()).containsExactly("begins");
        assertThat(elsewhere).isEmpty();
    }

    @Test
    void aStreamHasAPublisherFromWhenThatIsSubscribedTo() {
        ArrayDeque<Runnable> elsewhere = new ArrayDeque<>();
        StreamSender later = sender(elsewhere::add);
        later.subscribeTo(subscriber -> subscriber.onSubscribe(new Subscription()), () -> {});
        assertThat(later.hasPublisher()).isFalse();
        elsewhere.remove().run();
        assertThat(later.hasPublisher()).isTrue();
        later.cancel();
        elsewhere.remove().run();
        assertThat(seen()).containsExactly("cancel");
        assertThat(later.hasPublisher()).as("for good").isTrue();
    }

    @Test
    void aStreamThatEndsBeforeItsPublisherHasAThreadHasNone() {
        ArrayDeque<Runnable> elsewhere = new ArrayDeque<>();
        StreamSender late = sender(elsewhere::add);
        late.subscribeTo(subscriber -> seen.add("subscribe"), () -> {});
        late.cancel();
        elsewhere.remove().run();
        assertThat(seen()).isEmpty();
        assertThat(late.hasPublisher()).isFalse();
    }

    @Test
    void aPublisherThatCannotBeAskedFailsTheStream() {
        sender.subscribeHere(subscriber -> subscriber.onSubscribe(new Flow.Subscription() {
            @Override
            public void request(long items) {
                throw new IllegalStateException("not today");
            }

            @Override
            public void cancel() {
                seen.add("cancel");
            }
        }));
        sender.onCredit(1);
        assertThat(seen()).containsExactlyInAnyOrder("cancel", "failed not today");
    }

    @Test
    void aSecondSubscriptionIsCancelled() {
        subscribe();
        sender.onSubscribe(new Subscription());
        assertThat(seen()).containsExactly("cancel");
        assertThat(ledger.held(Resource.STREAMS)).isEqualTo(1);
        sender.onCredit(1);
        assertThat(seen()).containsExactly("request 1");
    }

    @Test
    void aStreamTooManyIsRefused() {
        StreamSender first = sender();
        subscribe(first);
        sender.subscribeTo(subscriber -> seen.add("subscribe"), () -> seen.add("begins"));
        assertThat(seen()).containsExactly("failed too many streams on this connection or server", "begins");
        first.cancel();
        assertThat(seen()).containsExactly("cancel");
    }

    /** A publisher or a subscription that a log has wrapped around another one. */
    private final class Notified extends Subscription implements Flow.Publisher<Object>, StreamEndListener {
        @Override
        public void subscribe(Flow.Subscriber<? super Object> subscriber) {
            subscriber.onSubscribe(this);
        }

        @Override
        public void ended(@Nullable Throwable why) {
            seen.add("ended " + (why == null ? "for nobody" : why.getMessage()));
        }
    }

    @Test
    void aLogHearsHowAStreamHasEndedThatIsNeverSubscribedTo() {
        ArrayDeque<Runnable> elsewhere = new ArrayDeque<>();
        StreamSender late = sender(elsewhere::add);
        late.subscribeTo(new Notified(), () -> {});
        late.cancel();
        assertThat(seen()).isEmpty();
        elsewhere.remove().run();
        assertThat(seen()).containsExactly("ended for nobody");
        late.subscribeTo(new Notified(), () -> {});
        elsewhere.remove().run();
        assertThat(seen()).containsExactly("ended for nobody");
        StreamSender first = sender();
        subscribe(first);
        sender.subscribeTo(new Notified(), () -> {});
        String tooMany = "too many streams on this connection or server";
        assertThat(seen()).containsExactly("ended " + tooMany, "failed " + tooMany);
        first.cancel();
        assertThat(seen()).containsExactly("cancel");
    }

    /**
     * Reactive Streams does not allow that a publisher ends its stream while it is cancelled, but some publishers do
     * it.
     */
    @Test
    void aPublisherThatEndsItsStreamWhileItIsCancelledDoesNotHideWhyItFails() {
        sender.subscribeHere(subscriber -> subscriber.onSubscribe(new Flow.Subscription() {
            @Override
            public void request(long items) {
                subscriber.onNext("!");
            }

            @Override
            public void cancel() {
                seen.add("cancel");
                subscriber.onNext("a");
                subscriber.onError(new IllegalStateException("cancelled"));
                subscriber.onComplete();
                subscriber.onSubscribe(new Subscription());
            }
        }));
        sender.onCredit(1);
        assertThat(seen()).containsExactly("failed unwritable", "cancel", "cancel");
        assertThat(sent()).isEmpty();
        sender.onCredit(1);
        assertThat(seen()).as("it is asked for nothing more").isEmpty();
    }

    @Test
    void aLogHearsWhyAPublisherIsCancelledBeforeItIs() {
        sender.subscribeHere(new Notified());
        sender.onNext("a");
        assertThat(seen())
                .hasSize(3)
                .satisfies(all -> assertThat(all.get(0)).startsWith("ended the publisher makes items"))
                .contains("cancel");
        sender.cancel();
        StreamSender other = sender();
        other.subscribeHere(new Notified());
        other.onCredit(1);
        other.onNext("a".repeat(MAX_BYTES + 1));
        assertThat(seen())
                .hasSize(4)
                .satisfies(all -> assertThat(all.get(1)).startsWith("ended an item of"))
                .contains("cancel");
        other.cancel();
    }

    @Test
    void anItemThatNobodyHasAskedForFailsTheStream() {
        subscribe();
        sender.onNext("a");
        assertThat(seen()).hasSize(2).first().isEqualTo("cancel");
        sender.onCredit(1);
        sender.onNext("b");
        assertThat(sent()).isEmpty();
        assertThat(seen()).isEmpty();
        sender.cancel();
        StreamSender other = sender();
        subscribe(other);
        other.onCredit(1);
        other.onNext("b");
        other.onNext("c");
        assertThat(sent()).containsExactly("ITEM b");
        List<String> all = seen();
        other.cancel();
        assertThat(all)
                .hasSize(3)
                .last()
                .asString()
                .startsWith("failed the publisher makes items that nobody has asked for");
    }

    /** The peer hears of the failure only when the call ends, so an end would look like that of all items. */
    @Test
    void aPublisherThatHasFailedDoesNotEndItsStream() {
        subscribe();
        sender.onCredit(1);
        sender.onError(new IllegalStateException("not today"));
        sender.onError(new IllegalStateException("nor tomorrow"));
        sender.onComplete();
        sender.onNext("a");
        assertThat(sent()).isEmpty();
        assertThat(seen()).containsExactly("request 1", "failed not today");
    }

    /** The codec stands for another thread of the publisher, which ends the stream meanwhile. */
    @Test
    void aPublisherThatEndsItsStreamWhileItMakesAnItemFailsTheStream() {
        AtomicReference<StreamSender> self = new AtomicReference<>();
        Codec<Object> ending = new Codec<>() {
            @Override
            public void write(Object value, ByteBuf out) {
                self.get().onComplete();
                StreamReceiverTest.TEXT.write(value, out);
            }

            @Override
            public Object read(ByteBuf in) {
                return StreamReceiverTest.TEXT.read(in);
            }
        };
        StreamSender other = sender(ending, Runnable::run);
        self.set(other);
        subscribe(other);
        other.onCredit(2);
        other.onNext("a");
        assertThat(sent()).isEmpty();
        assertThat(seen())
                .hasSize(3)
                .startsWith("request 1", "cancel")
                .last()
                .asString()
                .startsWith("failed the publisher ends the stream while another of its threads makes an item");
        other.cancel();
    }

    @Test
    void anItemAfterTheEndIsLogged() {
        CallbackFailures.LOG.forget();
        List<String> logged = new ArrayList<>();
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord line) {
                logged.add(line.getMessage());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        Logger logger = Logger.getLogger("dev.rpcx.callbacks");
        logger.addHandler(handler);
        logger.setUseParentHandlers(false);
        try {
            subscribe();
            sender.onCredit(2);
            sender.onNext("a");
            sender.onComplete();
            sender.onComplete();
            sender.onNext("b");
        } finally {
            logger.setUseParentHandlers(true);
            logger.removeHandler(handler);
        }
        assertThat(sent()).containsExactly("ITEM a", "END");
        assertThat(logged)
                .singleElement()
                .asString()
                .startsWith("a publisher has made an item after its onComplete")
                .contains("expected: ");
    }

    @Test
    void anItemThatCannotBeWrittenFailsTheStream() {
        subscribe();
        sender.onCredit(1);
        sender.onNext("!");
        assertThat(seen()).containsExactly("request 1", "cancel", "failed unwritable");
        assertThat(sent()).isEmpty();
    }

    @Test
    void anItemBeyondALimitOfItsTypeIsTooLarge() {
        StreamSender numbers = sender(Codecs.standard(StreamSenderTest.class).value(BigDecimal.class), Runnable::run);
        subscribe(numbers);
        numbers.onCredit(1);
        numbers.onNext(new BigDecimal(BigInteger.ONE, 1_000_000));
        assertThat(seen())
                .hasSize(3)
                .startsWith("request 1", "cancel")
                .last()
                .asString()
                .startsWith("too large an item cannot be sent: ")
                .contains("scale 1000000");
        assertThat(sent()).isEmpty();
        assertThat(held()).isZero();
        numbers.cancel();
    }

    /** An item whose text must not be null. */
    record Named(@Field(1) String name) {}

    @Test
    @SuppressWarnings("NullAway") // a publisher can do this all the same
    void anItemWithANullWhereItsTypeHasNoneFailsTheStream() {
        StreamSender names = sender(Codecs.standard(StreamSenderTest.class).value(Named.class), Runnable::run);
        subscribe(names);
        names.onCredit(1);
        names.onNext(new Named(null));
        assertThat(seen())
                .hasSize(3)
                .startsWith("request 1", "cancel")
                .last()
                .asString()
                .startsWith("failed ")
                .contains("is null");
        assertThat(sent()).isEmpty();
        assertThat(held()).isZero();
        names.cancel();
    }

    @Test
    void anItemMayBeAsLargeAsThePeerTakesAndNoLarger() {
        subscribe();
        sender.onCredit(2);
        sender.onNext("a".repeat(MAX_BYTES));
        assertThat(sent()).isNotEmpty();
        assertThat(seen()).containsExactly("request 1", "request 1");
        sender.onNext("a".repeat(MAX_BYTES + 1));
        assertThat(sent()).isEmpty();
        assertThat(seen())
                .containsExactly(
                        "cancel",
                        "too large an item of " + (MAX_BYTES + 1) + " bytes (expected: at most " + MAX_BYTES + ")");
    }

    @Test
    void anItemForWhichThereIsNoRoomFailsTheStreamAndItsEndIsSentNevertheless() {
        Charge others = account.charge(Resource.ITEM_BYTES_OUT);
        subscribe();
        sender.onCredit(2);
        assertThat(others.add(ALL_BYTES / 2)).isTrue();
        sender.onNext("a");
        assertThat(seen())
                .hasSize(3)
                .contains("request 1", "cancel")
                .last()
                .asString()
                .contains("could not be kept");
        sender.addLast(Wire.ERROR, Unpooled.copiedBuffer("why", StandardCharsets.UTF_8));
        assertThat(sent()).containsExactly("ERROR why");
        assertThat(seen()).containsExactly("last left");
        assertThat(ledger.held(Resource.STREAMS)).isZero();
        others.release();
    }

    /**
     * All streams that a server takes may end in this way at the same time, and the texts of their errors may quote
     * what the handlers were given.
     */
    @Test
    void anErrorForWhichThereIsNoRoomIsSentWithoutItsText() {
        Charge others = account.charge(Resource.ITEM_BYTES_OUT);
        subscribe();
        assertThat(others.add(ALL_BYTES / 2)).isTrue();
        ByteBuf error = Unpooled.buffer();
        WireError.write(error, new RPCXException(RPCXException.Code.HANDLER_FAILED, "why".repeat(500)));
        sender.addLast(Wire.ERROR, error);
        assertThat(sent()).singleElement().asString().startsWith("ERROR").doesNotContain("bytes", "why");
        assertThat(seen()).endsWith("last left");
        others.release();
    }

    @Test
    void anErrorWithoutItsTextSaysWhatItIsAllTheSame() {
        Charge others = takeAllRoom();
        subscribe();
        ByteBuf error = Unpooled.buffer();
        WireError.write(error, RPCXException.refused(RPCXException.Code.INVALID, "why".repeat(500)));
        sender.addLast(Wire.ERROR, error);
        RPCXException sent = sentError();
        assertThat(sent.code()).isEqualTo(RPCXException.Code.INVALID);
        assertThat(sent.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        assertThat(sent.getMessage()).doesNotContain("why");
        others.release();
    }

    @Test
    void aSmallErrorForWhichThereIsNoRoomKeepsItsText() {
        Charge others = takeAllRoom();
        subscribe();
        sender.addLast(Wire.ERROR, error("why", 64));
        assertThat(sentError()).hasMessage("why");
        StreamSender larger = sender();
        subscribe(larger);
        larger.addLast(Wire.ERROR, error("why", 65));
        assertThat(sentError().getMessage()).doesNotContain("why");
        others.release();
    }

    /** The waiting items make room for the error. It is sent instead of them, and is charged. */
    @Test
    void anErrorForWhichThereIsNoRoomTakesThatOfTheItemsThatWait() {
        subscribe();
        sender.onCredit(9);
        Runnable readAgain = stopReading();
        sender.onNext("a");
        channel.runPendingTasks();
        sender.onNext("b".repeat(10_000));
        assertThat(seen()).containsExactly("request 1", "request 1", "request 2");
        Charge others = takeAllRoom();
        long before = held();
        sender.addLast(Wire.ERROR, error("why".repeat(500), 8192));
        assertThat(held()).isBetween(before - 8192, before - 4096);
        others.release();
        assertThat(held()).as("what leaves and the error").isBetween(8192L, 8192L + 2 * 4096);
        readAgain.run();
        List<String> sent = sent();
        assertThat(sent).hasSize(2).first().isEqualTo("ITEM a");
        assertThat(sent).last().asString().matches("ERROR 15\\d\\d bytes");
        assertThat(seen()).containsExactly("last left");
        assertThat(held()).isZero();
    }

    @Test
    void anEndForWhichThereIsNoRoomDropsTheItemsBeforeIt() {
        Charge others = account.charge(Resource.ITEM_BYTES_OUT);
        subscribe();
        sender.onCredit(2);
        Runnable readAgain = stopReading();
        sender.onNext("a".repeat(20_000));
        channel.runPendingTasks();
        long before = held();
        others.add((ALL_BYTES - 2 * before) / 2 / 4096 * 4096);
        while (others.add(1)) {}
        ByteBuf error = Unpooled.buffer(8192);
        WireError.write(error, new RPCXException(RPCXException.Code.HANDLER_FAILED, "why".repeat(500)));
        sender.addLast(Wire.ERROR, error);
        readAgain.run();
        assertThat(sent()).last().asString().startsWith("ERROR");
        assertThat(seen()).endsWith("last left");
        others.release();
    }

    /** Such an end says that all items have been sent. */
    @Test
    void aGoodEndForWhichThereIsNoRoomLosesNoItem() {
        Charge others = account.charge(Resource.ITEM_BYTES_OUT);
        subscribe();
        sender.onCredit(99);
        Runnable readAgain = stopReading();
        // these items fill the charge to the last byte
        int items = 3 * 4096 / (128 + FIRST_BYTES);
        for (int i = 0; i < items; i++) {
            sender.onNext("a");
        }
        channel.runPendingTasks();
        while (others.add(1)) {}
        sender.onComplete();
        readAgain.run();
        List<String> expected = new ArrayList<>(Collections.nCopies(items, "ITEM a"));
        expected.add("END");
        assertThat(sent()).isEqualTo(expected);
        assertThat(seen()).endsWith("last left");
        others.release();
    }

    // ---- the end from outside

    @Test
    void aCancelDropsWhatWaitsAndCancelsThePublisherOnce() {
        subscribe();
        sender.onCredit(2);
        sender.onNext("a".repeat(40_000));
        sender.cancel();
        assertThat(held()).isZero();
        assertThat(ledger.held(Resource.STREAMS)).isZero();
        sender.cancel();
        sender.onCredit(5);
        sender.onNext("b");
        sender.onComplete();
        assertThat(sent()).isEmpty();
        assertThat(seen()).containsExactly("request 1", "cancel");
        assertThat(held()).isZero();
    }

    @Test
    void aCancelWhileAnItemIsSentTakesItBack() {
        subscribe();
        sender.onCredit(2);
        Runnable readAgain = stopReading();
        sender.onNext("a".repeat(50_000));
        channel.runPendingTasks();
        assertThat(held()).isGreaterThan(50_000);
        sender.cancel();
        assertThat(held()).isZero();
        assertThat(sender.body.capacity())
                .as("nothing is kept that is not charged")
                .isLessThanOrEqualTo(FIRST_BYTES);
        readAgain.run();
        assertThat(sent()).isEmpty();
    }

    @Test
    void aPublisherThatHasEndedIsNotCancelled() {
        subscribe();
        sender.onCredit(1);
        sender.onNext("a");
        sender.onComplete();
        sender.cancel();
        assertThat(sent()).isEmpty();
        assertThat(seen()).containsExactly("request 1");
    }

    @Test
    void aPublisherThatComesAfterTheEndIsCancelled() {
        subscribe();
        sender.cancel();
        sender.onSubscribe(new Subscription());
        assertThat(seen()).containsExactly("cancel", "cancel");
        assertThat(ledger.held(Resource.STREAMS)).isZero();
        sender.onCredit(1);
        assertThat(seen()).isEmpty();
    }

    @Test
    void aPublisherThatComesAfterTheLastMessageHasBeenSentIsCancelled() {
        List<Flow.Subscriber<?>> waiting = new ArrayList<>();
        sender.subscribeTo(waiting::add, () -> {});
        sender.onCredit(1);
        sender.addLast(Wire.ERROR, Unpooled.copiedBuffer("why", StandardCharsets.UTF_8));
        assertThat(sent()).containsExactly("ERROR why");
        waiting.get(0).onSubscribe(new Subscription());
        assertThat(seen()).containsExactly("last left", "cancel");
        sender.subscribeTo(subscriber -> seen.add("subscribe"), () -> seen.add("begins"));
        assertThat(seen()).containsExactly("begins");
    }

    @Test
    void aStreamWhoseConnectionEndsIsCancelled() {
        subscribe();
        sender.onCredit(1);
        connection.close("the peer is gone");
        sender.onNext("a");
        channel.runPendingTasks();
        assertThat(seen()).containsExactly("request 1", "cancel");
        assertThat(held()).isZero();
    }
}
