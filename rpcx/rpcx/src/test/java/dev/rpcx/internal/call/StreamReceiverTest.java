package dev.rpcx.internal.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.codec.Codec;
import dev.rpcx.codec.Codecs;
import dev.rpcx.codec.Memory;
import dev.rpcx.internal.WireFault;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Outbound;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.Flow;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests the items of one call that come in: who receives what, in which order, and what is held meanwhile. */
@Timeout(60)
class StreamReceiverTest {
    private static final int ALL_BYTES = 64 * 1024;

    /** Encodes texts. A text that begins with an exclamation mark cannot be read. */
    static final Codec<Object> TEXT = new Codec<>() {
        @Override
        public void write(Object value, ByteBuf out) {
            if (value.equals("!")) {
                throw new IllegalArgumentException("unwritable");
            }
            out.writeBytes(((String) value).getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public Object read(ByteBuf in) {
            String text = in.readCharSequence(in.readableBytes(), StandardCharsets.UTF_8)
                    .toString();
            if (text.startsWith("!")) {
                throw new IllegalArgumentException("unreadable");
            }
            return text;
        }
    };

    private final Ledger ledger = new Ledger(
            "ledger under test",
            Map.of(Resource.ITEM_BYTES_IN, (long) ALL_BYTES, Resource.STREAMS, 2L),
            Map.of(),
            Integer.MAX_VALUE);
    private final Account account = Objects.requireNonNull(ledger.open(null));
    private final List<String> seen = new ArrayList<>();
    private final Queue<Runnable> elsewhere = new ArrayDeque<>();

    private final StreamReceiver.Peer peer = new StreamReceiver.Peer() {
        @Override
        public void credit(long items) {
            seen.add("credit " + items);
        }

        @Override
        public void cancel() {
            seen.add("cancel");
        }

        @Override
        public void overflow() {
            seen.add("overflow");
        }
    };

    /** Requests these numbers of items at the beginning, and records every signal. */
    private class Subscriber implements Flow.Subscriber<Object> {
        private final long[] asks;
        Flow.Subscription subscription;

        Subscriber(long... asks) {
            this.asks = asks;
        }

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
            for (long items : asks) {
                given.request(items);
            }
        }

        @Override
        public void onNext(Object item) {
            seen.add(String.valueOf(item));
        }

        @Override
        public void onError(Throwable thrown) {
            seen.add("error " + thrown.getMessage());
        }

        @Override
        public void onComplete() {
            seen.add("complete");
        }
    }

    private StreamReceiver client() {
        return new StreamReceiver(TEXT, peer);
    }

    private StreamReceiver serverAtOnce() {
        return new StreamReceiver(TEXT, peer, account, null, null);
    }

    private StreamReceiver server() {
        return new StreamReceiver(TEXT, peer, account, elsewhere::add, null);
    }

    private void runElsewhere() {
        for (Runnable next = elsewhere.poll(); next != null; next = elsewhere.poll()) {
            next.run();
        }
    }

    private static ByteBuf text(String text) {
        return Unpooled.copiedBuffer(text, StandardCharsets.UTF_8);
    }

    private Subscriber subscribed(StreamReceiver to, long... asks) {
        Subscriber subscriber = new Subscriber(asks);
        to.subscribe(subscriber);
        return subscriber;
    }

    /** Returns what has been seen since the last call of this method. */
    private List<String> seen() {
        List<String> copy = List.copyOf(seen);
        seen.clear();
        return copy;
    }

    private long held() {
        return ledger.held(Resource.ITEM_BYTES_IN);
    }

    // ---- credit

    @Test
    void whatIsAskedForAtTheBeginIsOneCreditAndWhatComesLaterIsOneEach() {
        Subscriber subscriber = subscribed(client(), 2, 3);
        assertThat(seen()).containsExactly("credit 5");
        subscriber.subscription.request(4);
        assertThat(seen()).containsExactly("credit 4");
    }

    @Test
    void whoAsksForNothingGivesNoCredit() {
        subscribed(client());
        assertThat(seen()).isEmpty();
    }

    @Test
    void moreThanThereAreNumbersForIsAllThereIs() {
        StreamReceiver stream = client();
        Subscriber subscriber = subscribed(stream, Long.MAX_VALUE, 7);
        assertThat(seen()).containsExactly("credit " + Long.MAX_VALUE);
        subscriber.subscription.request(Long.MAX_VALUE);
        stream.onItem(text("a"), false);
        assertThat(seen()).containsExactly("credit " + Long.MAX_VALUE, "a");
    }

    @Test
    void anItemBeyondTheCreditIsAFault() {
        StreamReceiver stream = client();
        Subscriber subscriber = subscribed(stream, 2);
        stream.onItem(text("a"), false);
        stream.onItem(text("b"), false);
        assertThatThrownBy(() -> stream.onItem(text("c"), false)).isInstanceOf(WireFault.class);
        subscriber.subscription.request(1);
        stream.onItem(text("d"), false);
        assertThat(seen()).containsExactly("credit 2", "a", "b", "credit 1", "d");
    }

    /** A client does this if its call could not begin after its request, and is then cancelled. */
    @Test
    void aStreamThatIsOpenedAgainTakesWhatItsPeerHasCreditForAndTellsNothingOfIt() {
        StreamReceiver stream = client();
        subscribed(stream, 2);
        stream.breakOff(new IllegalStateException("failed"));
        stream.open();
        stream.onItem(text("a"), false);
        assertThat(seen()).containsExactly("credit 2");
        stream.end(new IllegalStateException("cancelled"));
        assertThat(seen()).containsExactly("error failed");
    }

    @Test
    void aStreamThatNobodySubscribedToTakesNoItem() {
        assertThatThrownBy(() -> client().onItem(text("a"), false)).isInstanceOf(WireFault.class);
    }

    @Test
    void aSecondSubscriberIsRefused() {
        StreamReceiver stream = client();
        subscribed(stream, 1);
        assertThatThrownBy(() -> stream.subscribe(new Subscriber(1))).isInstanceOf(IllegalStateException.class);
        assertThat(seen()).containsExactly("credit 1");
    }

    // ---- what breaks the stream while items wait

    /**
     * The peer has said that no more items come. That ends the items that were read, but it does not hide the one that
     * could not be read.
     */
    @Test
    void anItemThatCannotBeReadEndsTheStreamAlsoWhereItsPeerHasEndedIt() {
        StreamReceiver stream = server();
        subscribed(stream, 9);
        for (String item : List.of("a", "!", "b", "!!", "c")) {
            stream.onItem(text(item), false);
        }
        stream.onEnd();
        assertThat(seen()).containsExactly("credit 9");
        runElsewhere();
        assertThat(seen())
                .containsExactly(
                        "a", "cancel", "error an item cannot be read: java.lang.IllegalArgumentException: unreadable");
        assertThat(held()).isZero();
        stream.end(new IllegalStateException("the call is over"));
        runElsewhere();
        assertThat(seen()).isEmpty();
    }

    @Test
    void theLastItemThatCannotBeReadEndsTheStream() {
        StreamReceiver stream = server();
        subscribed(stream, 9);
        stream.onItem(text("a"), false);
        stream.onItem(text("!"), false);
        stream.onEnd();
        runElsewhere();
        assertThat(seen())
                .containsExactly(
                        "credit 9",
                        "a",
                        "cancel",
                        "error an item cannot be read: java.lang.IllegalArgumentException: unreadable");
        assertThat(held()).isZero();
    }

    @Test
    void aSubscriberThatThrowsIsToldNoMoreItemsAlsoWhereItsPeerHasEndedThem() {
        StreamReceiver stream = server();
        stream.subscribe(new Subscriber(9) {
            @Override
            public void onNext(Object item) {
                super.onNext(item);
                throw new IllegalStateException("not " + item);
            }
        });
        stream.onItem(text("a"), false);
        stream.onItem(text("b"), false);
        stream.onEnd();
        runElsewhere();
        assertThat(seen()).containsExactly("credit 9", "a", "cancel", "error not a");
        assertThat(held()).isZero();
    }

    @Test
    void aSubscriberThatAsksForNoItemIsToldSoAlsoWhereItsPeerHasEndedTheStream() {
        StreamReceiver stream = server();
        stream.subscribe(new Subscriber(9) {
            @Override
            public void onNext(Object item) {
                super.onNext(item);
                subscription.request(0);
            }
        });
        stream.onItem(text("a"), false);
        stream.onItem(text("b"), false);
        stream.onEnd();
        runElsewhere();
        assertThat(seen()).containsExactly("credit 9", "a", "cancel", "error request of 0 items (expected: > 0)");
        assertThat(held()).isZero();
    }

    /**
     * Items that have arrived as a whole belong to the subscriber, with their end, whatever happens to the call
     * meanwhile.
     */
    @Test
    void itemsThatWaitAreToldThoughTheCallIsOver() {
        StreamReceiver stream = server();
        subscribed(stream, 9);
        stream.onItem(text("a"), false);
        stream.onItem(text("b"), false);
        stream.onEnd();
        stream.end(new IllegalStateException("the call is over"));
        runElsewhere();
        assertThat(seen()).containsExactly("credit 9", "a", "b", "complete");
        assertThat(held()).isZero();
    }

    // ---- parts

    @Test
    void partsAreJoinedAndCostOneCredit() {
        for (StreamReceiver stream : List.of(client(), serverAtOnce())) {
            subscribed(stream, 2);
            assertThat(stream.isReceiving()).isFalse();
            stream.onItem(text("ab"), true);
            assertThat(stream.isReceiving()).isTrue();
            assertThat(stream.partBytes()).isEqualTo(2);
            assertThat(stream.onPart(text("cd"), true, 100)).isTrue();
            assertThat(stream.isReceiving()).isTrue();
            assertThat(stream.onPart(text("e"), false, 100)).isTrue();
            assertThat(stream.isReceiving()).isFalse();
            assertThat(stream.partBytes()).isZero();
            stream.onItem(text("f"), false);
            assertThat(seen()).containsExactly("credit 2", "abcde", "f");
            stream.end(null);
            assertThat(seen()).containsExactly("complete");
        }
        assertThat(held()).isZero();
    }

    @Test
    void anItemMayBeAsLargeAsAllowedAndNoLarger() {
        StreamReceiver stream = client();
        subscribed(stream, 2);
        stream.onItem(text("ab"), true);
        assertThat(stream.onPart(text("cde"), true, 4)).isFalse();
        assertThat(stream.onPart(text("cd"), false, 4)).isTrue();
        assertThat(seen()).containsExactly("credit 2", "abcd");
    }

    @Test
    void anItemOfOneFrameMayBeAsLargeAsAllowedAndNoLarger() {
        StreamReceiver stream = serverAtOnce();
        subscribed(stream, 3);
        assertThat(stream.onItem(text("abcd"), false, 4)).isTrue();
        assertThat(stream.onItem(text("abcde"), false, 4)).isFalse();
        assertThat(stream.onItem(text("abcde"), true, 4)).isFalse();
        assertThat(stream.isReceiving()).isFalse();
        assertThat(seen()).containsExactly("credit 3", "abcd");
        assertThat(held()).isZero();
    }

    @Test
    void theBufferOfPartsGrowsByWhatTheirCallIsAskedFor() {
        int[] capacity = {0};
        Codec<Object> measuring = new Codec<>() {
            @Override
            public void write(Object value, ByteBuf out) {}

            @Override
            public Object read(ByteBuf in) {
                capacity[0] = in.capacity();
                return in.readableBytes();
            }
        };
        StreamReceiver stream = new StreamReceiver(measuring, peer);
        subscribed(stream, 1);
        long asked = stream.growth(15_000);
        stream.onItem(text("a".repeat(15_000)), true);
        asked += stream.growth(25_000);
        stream.onPart(text("b".repeat(25_000)), false, ALL_BYTES);
        assertThat(seen()).containsExactly("credit 1", "40000");
        assertThat((long) capacity[0]).isEqualTo(asked);
    }

    @Test
    void nothingButItsPartsMayComeWithinAnItem() {
        StreamReceiver stream = client();
        subscribed(stream, 5);
        stream.onItem(text("ab"), true);
        assertThatThrownBy(() -> stream.onItem(text("c"), false)).hasMessageContaining("an item within an item");
        assertThatThrownBy(stream::onEnd).hasMessageContaining("an end within an item");
    }

    @Test
    void nothingMayComeBehindTheEnd() {
        StreamReceiver stream = client();
        subscribed(stream, 5);
        stream.onEnd();
        assertThatThrownBy(() -> stream.onItem(text("c"), false)).hasMessageContaining("after the end");
        assertThatThrownBy(stream::onEnd).hasMessageContaining("after the end");
        assertThat(seen()).containsExactly("credit 5", "complete");
    }

    @Test
    void partsAreChargedUntilTheirItemIsTold() {
        StreamReceiver stream = serverAtOnce();
        subscribed(stream, 2);
        stream.onItem(text("a".repeat(10_000)), true);
        assertThat(held()).isBetween(10_000L, 14_096L);
        stream.onPart(text("b".repeat(10_000)), true, ALL_BYTES);
        assertThat(held()).as("the buffer, of which 20,000 are used").isEqualTo(32 << 10);
        stream.onPart(text("c"), false, ALL_BYTES);
        assertThat(held()).isZero();
        // the buffer of a large item is not kept for the next item
        stream.onItem(text("d"), true);
        assertThat(held()).isBetween(1L, 4096L);
    }

    /** There may be as many streams as the pool has steps for charges. */
    @Test
    void aQuietStreamKeepsNothingOfItsLastItem() {
        StreamReceiver stream = server();
        subscribed(stream, 5);
        stream.onItem(text("a"), false);
        stream.onItem(text("b"), false);
        assertThat(held()).isPositive();
        runElsewhere();
        assertThat(held()).isZero();
        stream.onItem(text("c"), false);
        stream.onItem(text("d"), true);
        runElsewhere();
        assertThat(held()).as("the part of the next item").isPositive();
        stream.onPart(text("e"), false, ALL_BYTES);
        runElsewhere();
        assertThat(held()).isZero();
    }

    @Test
    void partsBeyondWhatTheServerHoldsEndTheCall() {
        StreamReceiver stream = serverAtOnce();
        subscribed(stream, 2);
        stream.onItem(text("a".repeat(20_000)), true);
        assertThat(stream.onPart(text("b".repeat(20_000)), true, ALL_BYTES)).isTrue();
        assertThat(seen()).containsExactly("credit 2", "overflow");
        assertThat(stream.partBytes()).isEqualTo(20_000);
        assertThat(stream.isReceiving()).isTrue();
        stream.end(new IllegalStateException("overflow"));
        assertThat(held()).isZero();
    }

    @Test
    void partsThatNobodyTakesAreNotKept() {
        for (StreamReceiver stream : List.of(client(), serverAtOnce())) {
            Subscriber subscriber = subscribed(stream, 2);
            stream.onItem(text("ab"), true);
            subscriber.subscription.cancel();
            stream.onPart(text("cd"), true, 100);
            assertThat(stream.partBytes()).isZero();
            stream.onPart(text("e"), false, 100);
            assertThat(stream.isReceiving()).isFalse();
            stream.onItem(text("f"), true);
            assertThat(stream.partBytes()).isZero();
            assertThat(seen()).containsExactly("credit 2", "cancel");
        }
        assertThat(held()).isZero();
    }

    @Test
    void whatHasComeOfAnItemIsNotKeptBeyondItsStream() {
        List<BiConsumer<StreamReceiver, Subscriber>> ends = List.of(
                (stream, subscriber) -> subscriber.subscription.cancel(),
                (stream, subscriber) -> subscriber.subscription.request(0),
                (stream, subscriber) -> stream.end(new IllegalStateException("gone")));
        for (BiConsumer<StreamReceiver, Subscriber> end : ends) {
            for (StreamReceiver stream : List.of(client(), serverAtOnce(), server())) {
                Subscriber subscriber = subscribed(stream, 2);
                stream.onItem(text("a".repeat(10_000)), true);
                stream.onPart(text("b".repeat(10_000)), true, ALL_BYTES);
                assertThat(stream.partBytes()).isEqualTo(20_000);
                end.accept(stream, subscriber);
                assertThat(stream.partBytes()).isZero();
                assertThat(held()).isZero();
            }
        }
    }

    /** The buffer of an item in parts belongs to that item. No buffer is kept, whatever its size. */
    @Test
    void noItemsBufferIsKeptForTheNext() {
        for (int bytes : new int[] {10, Outbound.MAX_SMALL_BYTES, 20_000}) {
            List<ByteBuf> given = new ArrayList<>();
            Codec<Object> keeping = new Codec<>() {
                @Override
                public void write(Object value, ByteBuf out) {}

                @Override
                public Object read(ByteBuf in) {
                    given.add(in);
                    return in.readableBytes();
                }
            };
            StreamReceiver stream = new StreamReceiver(keeping, peer, account, null, null);
            subscribed(stream, 2);
            for (int i = 0; i < 2; i++) {
                stream.onItem(text("a".repeat(bytes / 2)), true);
                stream.onPart(text("b".repeat(bytes / 2)), false, ALL_BYTES);
            }
            assertThat(seen()).containsExactly("credit 2", "" + bytes, "" + bytes);
            assertThat(given.get(0)).isNotSameAs(given.get(1));
            stream.end(null);
            seen();
        }
    }

    // ---- the end

    @Test
    void theFirstEndAloneIsTold() {
        StreamReceiver stream = client();
        subscribed(stream, 1);
        stream.end(new IllegalStateException("first"));
        stream.end(null);
        stream.end(new IllegalStateException("second"));
        assertThat(seen()).containsExactly("credit 1", "error first");
    }

    @Test
    void anEndBeforeTheStreamIsOpenIsToldAsItOpens() {
        StreamReceiver stream = client();
        stream.begin(new Subscriber(1));
        stream.end(new IllegalStateException("refused"));
        assertThat(seen()).isEmpty();
        stream.open();
        assertThat(seen()).containsExactly("credit 1", "error refused");
    }

    @Test
    void anEndBeforeThereIsASubscriberIsToldToTheOneThatComes() {
        StreamReceiver stream = serverAtOnce();
        stream.end(null);
        assertThat(ledger.held(Resource.STREAMS)).isZero();
        subscribed(stream);
        assertThat(seen()).containsExactly("complete");
    }

    @Test
    void aStreamIsCountedUntilItsEnd() {
        StreamReceiver stream = serverAtOnce();
        assertThat(stream.hold()).isTrue();
        assertThat(ledger.held(Resource.STREAMS)).isEqualTo(1);
        subscribed(stream, 1);
        stream.onEnd();
        assertThat(ledger.held(Resource.STREAMS)).isZero();
        assertThat(seen()).containsExactly("credit 1", "complete");
    }

    @Test
    void aStreamTooManyIsNotToBe() {
        StreamReceiver first = serverAtOnce();
        StreamReceiver second = serverAtOnce();
        StreamReceiver third = serverAtOnce();
        assertThat(first.hold()).isTrue();
        assertThat(second.hold()).isFalse();
        assertThat(client().hold()).as("a client's is part of its call").isTrue();
        first.end(null);
        assertThat(third.hold()).isTrue();
        third.end(null);
        assertThat(ledger.held(Resource.STREAMS)).isZero();
    }

    @Test
    void aSubscriberThatThrowsAtItsEndHarmsNobodyElse() {
        StreamReceiver stream = client();
        stream.subscribe(new Subscriber(1) {
            @Override
            public void onComplete() {
                super.onComplete();
                throw new IllegalStateException("not that");
            }
        });
        stream.onEnd();
        stream.end(new IllegalStateException("late"));
        assertThat(seen()).containsExactly("credit 1", "complete");
    }

    @Test
    void whoHasCancelledIsToldNothing() {
        for (StreamReceiver stream : List.of(client(), serverAtOnce(), server())) {
            Subscriber subscriber = subscribed(stream, 5);
            stream.onItem(text("a"), false);
            runElsewhere();
            subscriber.subscription.cancel();
            stream.onItem(text("b"), false);
            stream.onEnd();
            runElsewhere();
            assertThat(seen()).containsExactly("credit 5", "a", "cancel");
        }
        assertThat(held()).isZero();
    }

    // ---- faults of the subscriber

    @Test
    void aClientsSubscriberThatAsksForNoItemsIsToldWhenItsCallHasEnded() {
        StreamReceiver stream = client();
        Subscriber subscriber = subscribed(stream, 3);
        subscriber.subscription.request(0);
        assertThat(seen()).containsExactly("credit 3", "cancel");
        stream.onItem(text("a"), false);
        subscriber.subscription.request(-1);
        assertThat(seen()).containsExactly("cancel");
        stream.end(new IllegalStateException("cancelled"));
        assertThat(seen()).containsExactly("error request of 0 items (expected: > 0)");
    }

    @Test
    void aClientsSubscriberThatAsksForNoItemsAtTheBeginIsToldAtOnce() {
        StreamReceiver stream = client();
        stream.begin(new Subscriber(0));
        assertThat(seen()).containsExactly("cancel");
        stream.open();
        assertThat(seen()).containsExactly("error request of 0 items (expected: > 0)");
    }

    @Test
    void aServersSubscriberThatAsksForNoItemsIsToldAtOnce() {
        Subscriber subscriber = subscribed(serverAtOnce(), 3);
        subscriber.subscription.request(-5);
        assertThat(seen()).containsExactly("credit 3", "error request of -5 items (expected: > 0)", "cancel");
        assertThat(ledger.held(Resource.STREAMS)).isZero();
    }

    @Test
    void aSubscriberThatThrowsHasItsStreamEnded() {
        StreamReceiver stream = client();
        stream.subscribe(new Subscriber(3) {
            @Override
            public void onNext(Object item) {
                throw new IllegalStateException("enough of " + item);
            }
        });
        stream.onItem(text("a"), false);
        assertThat(seen()).containsExactly("credit 3", "cancel", "error enough of a");
        stream.onItem(text("b"), false);
        assertThat(seen()).isEmpty();
    }

    @Test
    void anItemThatCannotBeReadEndsTheStream() {
        StreamReceiver stream = client();
        subscribed(stream, 3);
        stream.onItem(text("!"), false);
        assertThat(seen()).first().isEqualTo("credit 3");
        stream.end(null);
        assertThat(seen).isEmpty();
    }

    @Test
    void anItemThatCannotBeReadIsTold() {
        StreamReceiver stream = client();
        subscribed(stream, 3);
        stream.onItem(text("!"), false);
        assertThat(seen())
                .hasSize(3)
                .contains("cancel")
                .last()
                .asString()
                .startsWith("error an item cannot be read")
                .contains("unreadable");
    }

    /** A subscriber is never given null, whatever the type of the items. */
    @Test
    void anItemThatIsReadAsNullCannotBeRead() throws Exception {
        Codec<Object> ids = Codecs.standard(StreamReceiverTest.class).value(UUID.class);
        StreamReceiver stream = new StreamReceiver(ids, peer);
        subscribed(stream, 3);
        stream.onItem(Unpooled.EMPTY_BUFFER, false);
        assertThat(seen())
                .containsExactly(
                        "credit 3",
                        "cancel",
                        "error an item cannot be read: java.lang.NullPointerException: it is null (expected: a"
                                + " value, since a stream has no null)");
    }

    @Test
    void theObjectOfAnItemIsChargedWhileItsSubscriberHasIt() {
        Codec<Object> charging = new Codec<>() {
            @Override
            public void write(Object value, ByteBuf out) {}

            @Override
            public Object read(ByteBuf in) {
                return "uncharged";
            }

            @Override
            public Object read(ByteBuf in, Memory memory) {
                assertThat(memory.take(10_000)).isTrue();
                return "charged";
            }
        };
        StreamReceiver stream = new StreamReceiver(charging, peer, account, null, null);
        stream.subscribe(new Subscriber(2) {
            @Override
            public void onNext(Object item) {
                super.onNext(item);
                assertThat(ledger.held(Resource.OBJECT_BYTES)).isBetween(10_000L, 14_096L);
            }
        });
        for (int i = 0; i < 2; i++) {
            stream.onItem(text("a"), false);
            assertThat(ledger.held(Resource.OBJECT_BYTES)).isZero();
        }
        stream.onEnd();
        StreamReceiver ofACall = new StreamReceiver(charging, peer);
        subscribed(ofACall, 1);
        ofACall.onItem(text("a"), false);
        assertThat(seen()).containsExactly("credit 2", "charged", "charged", "complete", "credit 1", "uncharged");
    }

    // ---- elsewhere

    @Test
    void elsewhereItemsWaitAndAreChargedUntilTheyAreTold() {
        StreamReceiver stream = server();
        subscribed(stream, 3);
        runElsewhere();
        ByteBuf shared = text("a".repeat(5000));
        stream.onItem(shared, false);
        shared.setZero(0, shared.capacity());
        stream.onItem(text("b".repeat(5000)), false);
        stream.onEnd();
        assertThat(seen()).containsExactly("credit 3");
        assertThat(held()).isBetween(10_000L, 16_384L);
        assertThat(ledger.held(Resource.STREAMS)).isZero();
        runElsewhere();
        assertThat(seen()).containsExactly("a".repeat(5000), "b".repeat(5000), "complete");
        assertThat(held()).isZero();
    }

    @Test
    void elsewhereWhatAnItemCostsComesBackWhenItHasBeenTold() {
        StreamReceiver stream = server();
        List<Long> during = new ArrayList<>();
        stream.subscribe(new Subscriber(3) {
            @Override
            public void onNext(Object item) {
                during.add(held());
            }
        });
        runElsewhere();
        stream.onItem(text("a".repeat(9000)), false);
        stream.onItem(text("b".repeat(9000)), false);
        runElsewhere();
        assertThat(during).hasSize(2);
        assertThat(during.get(0)).isGreaterThanOrEqualTo(18_000);
        assertThat(during.get(1)).isBetween(9000L, 9000L + 128 + 2 * 4096);
        assertThat(held()).isZero();
        stream.onItem(text("c"), true);
        stream.onPart(text("c".repeat(9000)), false, ALL_BYTES);
        assertThat(held()).isBetween(9001L, 9001L + 128 + 2 * 4096);
        runElsewhere();
        assertThat(held()).isZero();
    }

    @Test
    void elsewhereThePartsOfTheNextItemStayChargedWhenTheLastThatWaitsHasBeenTold() {
        StreamReceiver stream = server();
        subscribed(stream, 2);
        runElsewhere();
        stream.onItem(text("a"), false);
        stream.onItem(text("b".repeat(10_000)), true);
        runElsewhere();
        assertThat(seen()).containsExactly("credit 2", "a");
        assertThat(held()).isBetween(10_000L, 10_000L + 2 * 4096);
        assertThat(stream.onPart(text("c"), false, ALL_BYTES)).isTrue();
        runElsewhere();
        assertThat(seen()).containsExactly("b".repeat(10_000) + "c");
        assertThat(held()).isZero();
    }

    @Test
    void elsewhereItemsThatWaitStayChargedBehindAGoodEnd() {
        StreamReceiver stream = server();
        List<Long> during = new ArrayList<>();
        stream.subscribe(new Subscriber(3) {
            @Override
            public void onNext(Object item) {
                during.add(held());
            }
        });
        runElsewhere();
        for (int i = 0; i < 3; i++) {
            stream.onItem(text("a".repeat(9000)), false);
        }
        stream.onEnd();
        runElsewhere();
        assertThat(during).hasSize(3);
        assertThat(during.get(1)).isBetween(18_000L, 27_000L);
        assertThat(during.get(2)).isBetween(9_000L, 18_000L);
        assertThat(held()).isZero();
        assertThat(seen()).containsExactly("credit 3", "complete");
    }

    /**
     * The call has ended well while an item was arriving. Complete items are delivered, and the incomplete one is not
     * kept.
     */
    @Test
    void elsewhereAnEndWithinAnItemDropsItsPartsAloneAndKeepsWhatWaits() {
        StreamReceiver stream = server();
        subscribed(stream, 2);
        runElsewhere();
        stream.onItem(text("a"), false);
        stream.onItem(text("b".repeat(10_000)), true);
        stream.end(null);
        assertThat(stream.partBytes()).isZero();
        assertThat(held()).isBetween(1L, 8192L);
        runElsewhere();
        assertThat(seen()).containsExactly("credit 2", "a", "complete");
        assertThat(held()).isZero();
    }

    @Test
    void elsewhereAnItemCostsMoreThanItsBytes() {
        StreamReceiver stream = server();
        subscribed(stream, 100_000);
        runElsewhere();
        for (int i = 0; i < ALL_BYTES && !seen.contains("overflow"); i++) {
            stream.onItem(text(""), false);
        }
        assertThat(seen()).containsExactly("credit 100000", "overflow");
    }

    @Test
    void elsewhereAFailureDropsWhatWaits() {
        StreamReceiver stream = server();
        subscribed(stream, 3);
        runElsewhere();
        stream.onItem(text("a".repeat(5000)), false);
        stream.end(new IllegalStateException("gone"));
        assertThat(held()).isZero();
        stream.onItem(text("b".repeat(5000)), false);
        assertThat(held()).isZero();
        runElsewhere();
        assertThat(seen()).containsExactly("credit 3", "error gone");
    }

    @Test
    void elsewhereACancelDropsWhatWaits() {
        StreamReceiver stream = server();
        Subscriber subscriber = subscribed(stream, 3);
        runElsewhere();
        stream.onItem(text("a".repeat(5000)), false);
        subscriber.subscription.cancel();
        assertThat(held()).isZero();
        runElsewhere();
        stream.end(null);
        runElsewhere();
        assertThat(seen()).containsExactly("credit 3", "cancel");
        assertThat(held()).isZero();
    }

    @Test
    void elsewhereWhoAsksForNoItemsIsToldSoWhereItsOtherSignalsAre() {
        StreamReceiver stream = server();
        Subscriber subscriber = subscribed(stream, 3);
        runElsewhere();
        subscriber.subscription.request(0);
        assertThat(seen()).containsExactly("credit 3", "cancel");
        runElsewhere();
        assertThat(seen()).containsExactly("error request of 0 items (expected: > 0)");
        assertThat(ledger.held(Resource.STREAMS)).isZero();
    }

    @Test
    void elsewhereAnEndBeforeTheStreamIsOpenIsToldAsItOpens() {
        StreamReceiver stream = server();
        stream.begin(new Subscriber(1));
        stream.end(null);
        runElsewhere();
        assertThat(seen()).isEmpty();
        stream.open();
        runElsewhere();
        assertThat(seen()).containsExactly("credit 1", "complete");
    }

    @Test
    void elsewhereTheLastItemBeforeAGoodEndGivesAllBack() {
        StreamReceiver stream = server();
        subscribed(stream, 2);
        runElsewhere();
        stream.onItem(text("a"), false);
        stream.onItem(text("b"), false);
        stream.onEnd();
        assertThat(held()).isPositive();
        runElsewhere();
        assertThat(seen()).containsExactly("credit 2", "a", "b", "complete");
        assertThat(held()).isZero();
    }

    @Test
    void anItemWhoseLastPartFindsNoRoomIsNotTold() {
        StreamReceiver stream = serverAtOnce();
        subscribed(stream, 2);
        stream.onItem(text("a".repeat(20_000)), true);
        assertThat(stream.onPart(text("b".repeat(20_000)), false, ALL_BYTES)).isTrue();
        assertThat(seen()).containsExactly("credit 2", "overflow");
        stream.end(null);
        assertThat(held()).isZero();
    }

    // ---- threads

    @Test
    void howeverManyItemsWaitOneSignalGivesThem() {
        StreamReceiver stream = server();
        subscribed(stream, 200);
        runElsewhere();
        seen();
        for (int i = 0; i < 200; i++) {
            stream.onItem(text("x"), false);
        }
        stream.onEnd();
        assertThat(elsewhere).hasSize(1);
        runElsewhere();
        List<String> told = seen();
        assertThat(told).hasSize(201).doesNotContain("overflow").endsWith("x", "complete");
        assertThat(held()).isZero();
    }

    @Test
    void anEndBehindNothingIsToldElsewhereToo() {
        StreamReceiver stream = server();
        subscribed(stream, 2);
        runElsewhere();
        stream.onItem(text("x"), false);
        runElsewhere();
        stream.onEnd();
        assertThat(seen()).containsExactly("credit 2", "x");
        runElsewhere();
        assertThat(seen()).containsExactly("complete");
    }

    @Test
    void aStreamCountsUntilItsSubscriberHasGivenItsThreadBack() {
        StreamReceiver stream = server();
        assertThat(stream.hold()).isTrue();
        subscribed(stream, 2);
        runElsewhere();
        assertThat(ledger.held(Resource.STREAMS)).isOne();
        stream.onItem(text("x"), false);
        stream.end(new IllegalStateException("the caller is gone"));
        assertThat(ledger.held(Resource.STREAMS)).isOne();
        runElsewhere();
        assertThat(ledger.held(Resource.STREAMS)).isZero();
        assertThat(seen()).endsWith("error the caller is gone");
    }
}
