package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.HandChannel;
import dev.rpcx.HandPlatform;
import dev.rpcx.Inside;
import dev.rpcx.Metadata;
import dev.rpcx.Method;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RawPeer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests calls that wait until their caller has read the replies before theirs, under a simulated clock. */
@Timeout(60)
class PostponedCallsTest {
    private static final int GENERATION = 1 << 16;
    private static final int LARGE_BYTES = 2 << 20;
    private static final int LARGE_SLOT = 4000;
    private static final int MANY = 40;
    private static final int MAX_AT_ONCE = 16;
    private static final int GIVEN_MILLIS = 2_000;
    private static final int STREAMS = 300;
    private static final int ITEM_CHARS = 60_000;
    private static final long MEBIBYTE = 1 << 20;
    private static final long ALL_THERE_IS = 1L << 62;

    /** At most so many streams begin until the server has seen a mebibyte of items. This counts those under way. */
    private static final int MAX_BEGUN = 40;

    @RPCXServer("postponed")
    static final class Service {
        final ArrayDeque<CompletableFuture<String>> waiting = new ArrayDeque<>();
        int begun;

        /** Returns its answer before its subscriber has been called. */
        @Method
        String largeAndEarly(Flow.Publisher<String> given) {
            given.subscribe(new StreamsTest.Collected<>(1));
            return "x".repeat(LARGE_BYTES);
        }

        @Method
        String large(int bytes) {
            return "x".repeat(bytes);
        }

        @Method
        String quick() {
            return "quick";
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        String pooled() {
            return "pooled";
        }

        @Method
        CompletableFuture<String> waits() {
            CompletableFuture<String> result = new CompletableFuture<>();
            waiting.add(result);
            return result;
        }

        @Method
        Flow.Publisher<String> items(int count) {
            begun++;
            return new StreamsTest.Made<>(count, i -> "x".repeat(ITEM_CHARS));
        }

        void endAll() {
            waiting.forEach(result -> result.complete("done"));
            waiting.clear();
        }
    }

    /** A client that is a channel without a socket. */
    private final class Peer {
        final EmbeddedChannel channel;
        private int sent;

        /** Counts the items that {@link #ends} has met. */
        private int items;

        Peer() {
            this(platform.accept());
        }

        Peer(EmbeddedChannel channel) {
            this.channel = channel;
            send(RawPeer.preface());
            HandPlatform.written(channel);
            peers.add(this);
        }

        /** Has bytes arrive. Where the server does not want to read now, it is as if it had read them before that. */
        void send(ByteBuf bytes) {
            channel.config().setAutoRead(true);
            byte[] all = ByteBufUtil.getBytes(bytes);
            platform.read(channel, all, 0, all.length);
        }

        void request(int slot, String method) {
            ByteBuf payload = RawPeer.prelude("postponed", method);
            Varint.write(payload, GIVEN_MILLIS * 1000L);
            if (method.equals("large")) {
                payload.writeByte(1 << 3);
                Varint.write(payload, LARGE_BYTES);
            }
            send(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.TIME, id(slot), payload));
        }

        /** Makes a call of "quick" whose metadata are large enough to be charged when it arrives. */
        void requestWithToken(int slot) {
            ByteBuf payload = RawPeer.prelude("postponed", "quick");
            Varint.write(payload, GIVEN_MILLIS * 1000L);
            MetadataFields.write(payload, Metadata.EMPTY.with("token", "t".repeat(5_000)));
            send(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.TIME | Wire.METADATA, id(slot), payload));
        }

        /** Makes so many calls, each in the next slot; each comes to the thread where its handler would run. */
        void requests(int count, String method) {
            for (int i = 0; i < count; i++) {
                request(sent++, method);
                platform.handleAll(channel);
            }
        }

        /** Asks for so many streams in one go. All handlers come to their threads before anything is made. */
        void streams(int count, int items, long credit) {
            ByteBuf all = Unpooled.buffer();
            for (int i = 0; i < count; i++) {
                int id = id(sent++);
                ByteBuf payload = RawPeer.prelude("postponed", "items");
                Varint.write(payload, GIVEN_MILLIS * 1000L);
                payload.writeByte(1 << 3);
                Varint.write(payload, items);
                all.writeBytes(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.TIME, id, payload));
                if (credit > 0) {
                    all.writeBytes(credit(id, credit));
                }
            }
            send(all);
        }

        /** Asks for more streams than this client reads, so that most of them wait. */
        void postponedStreams() {
            platform.reads(channel, false);
            streams(STREAMS, 1, ALL_THERE_IS);
            platform.handleAll(channel);
            assertThat(service.begun).isBetween(1, MAX_BEGUN);
        }

        void cancel(int slot) {
            send(RawPeer.frame(Wire.CANCEL, id(slot), Unpooled.EMPTY_BUFFER));
        }

        /** Has the server hold a large reply from now on, which this client does not read. */
        void stopReading() {
            platform.reads(channel, false);
            request(LARGE_SLOT, "large");
            platform.handleAll(channel);
            assertThat(Inside.core(server).ledger().held(Resource.REPLY_BYTES)).isGreaterThan(1 << 20);
        }

        void read() {
            platform.reads(channel, true);
        }

        ServerConnection connection() {
            return Objects.requireNonNull(channel.pipeline().get(ServerConnection.class));
        }

        /** Charges so many bytes as if they were unread, beside what the server has made. */
        Charge unread(long bytes) {
            Charge charge = connection().account.charge(Resource.REPLY_BYTES);
            assertThat(charge.set(bytes)).isTrue();
            return charge;
        }

        /** Returns how each call has ended, by slot: "REPLY", or the code of its error. */
        Map<Integer, Object> ends() {
            Map<Integer, Object> ends = new HashMap<>();
            ByteBuf in = Unpooled.wrappedBuffer(HandPlatform.written(channel));
            while (in.isReadable()) {
                ByteBuf frame = in.readSlice((int) Varint.read(in));
                int head = frame.readUnsignedByte();
                int slot = frame.readInt() & Wire.SLOT_MASK;
                switch (head) {
                    case Wire.REPLY -> ends.put(slot, "REPLY");
                    case Wire.ITEM, Wire.ITEM | Wire.MORE -> items++;
                    case Wire.ERROR -> {
                        RPCXException error = WireError.read(frame);
                        if (slot != LARGE_SLOT && slot >= service.begun) {
                            assertThat(error.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
                        }
                        ends.put(slot, error.code());
                    }
                    default -> {
                        // other frames are the settings, the dictionary and the parts of the large reply
                    }
                }
            }
            return ends;
        }
    }

    private final HandPlatform platform = new HandPlatform();
    private final Service service = new Service();
    private final List<Peer> peers = new ArrayList<>();
    private Server server = server(10_000);

    private static int id(int slot) {
        return GENERATION | slot;
    }

    private static ByteBuf credit(int id, long items) {
        ByteBuf credit = Unpooled.buffer();
        Varint.write(credit, items);
        return RawPeer.frame(Wire.CREDIT, id, credit);
    }

    private Server server(int maxRunning) {
        return Inside.on(Server.builder(RegistryServer.registry(service)), platform)
                .maxRunning(maxRunning)
                .build()
                .start();
    }

    /**
     * Has so many calls wait for their reader, and then for the one thread of the pool, which another connection uses.
     */
    private Peer waitsForThePool(int calls) {
        server = Inside.on(Server.builder(RegistryServer.registry(service)), platform)
                .poolSize(1)
                .build()
                .start();
        Peer peer = new Peer();
        peer.stopReading();
        peer.requests(calls, "pooled");
        Peer other = new Peer();
        other.request(0, "pooled");
        peer.read();
        assertThat(Inside.core(server).running()).isEqualTo(calls + 1);
        assertThat(peer.ends()).isEmpty();
        return peer;
    }

    private AdmissionLimit limit(String method) {
        ServerMethod found = Inside.core(server).method(MethodDictionary.key("postponed", method));
        return Objects.requireNonNull(Objects.requireNonNull(found).admission());
    }

    @AfterEach
    void end() {
        for (Peer peer : peers) {
            peer.channel.close();
            platform.handleAll(peer.channel);
            service.endAll();
            platform.handleAll(peer.channel);
            platform.pass(peer.channel, 2, TimeUnit.HOURS);
            peer.channel.releaseOutbound();
        }
        assertThat(Inside.core(server).running()).isZero();
        assertThat(Inside.core(server).ledger().audit()).isEmpty();
    }

    @Test
    void allCallsThatHaveWaitedRunAtOnceWhenTheirCallerHasRead() {
        Peer peer = new Peer();
        peer.stopReading();
        peer.requests(MANY, "waits");
        assertThat(service.waiting).isEmpty();
        assertThat(Inside.core(server).running()).isZero();
        peer.read();
        assertThat(Inside.core(server).running())
                .as("no thread has come to them")
                .isEqualTo(MAX_AT_ONCE);
        platform.handleAll(peer.channel);
        assertThat(service.waiting).hasSize(MANY);
        assertThat(Inside.core(server).running()).isEqualTo(MANY);
    }

    /** The call has no place then, and running handlers alone hold something without a charge. */
    @Test
    void aCallThatWaitsIsChargedForItsRequestAndRefusedWhereThereIsNoRoomForThat() {
        Peer peer = new Peer();
        peer.stopReading();
        long before = Inside.core(server).ledger().held(Resource.REQUEST_BYTES);
        peer.requests(3, "quick");
        assertThat(Inside.core(server).ledger().held(Resource.REQUEST_BYTES) - before)
                .isEqualTo(3 * Charge.STEP_BYTES);
        // each other connection takes half of what is left, until nothing is left
        List<Account> others = new ArrayList<>();
        List<Charge> taken = new ArrayList<>();
        do {
            Account other = Objects.requireNonNull(Inside.core(server).ledger().open(null));
            others.add(other);
            taken.add(other.charge(Resource.REQUEST_BYTES));
            while (taken.get(taken.size() - 1).add(Charge.STEP_BYTES)) {}
        } while (taken.get(taken.size() - 1).held() > 0);
        peer.requests(1, "quick");
        taken.forEach(Charge::release);
        others.forEach(Account::close);
        peer.read();
        platform.handleAll(peer.channel);
        assertThat(peer.ends()).containsEntry(2, "REPLY").containsEntry(3, RPCXException.Code.OVERLOADED);
        assertThat(Inside.core(server).ledger().held(Resource.REQUEST_BYTES)).isZero();
    }

    @Test
    void aCallThatWaitsOnceMoreIsNotChargedForItsMetadataAgain() {
        Peer peer = new Peer();
        peer.stopReading();
        peer.requestWithToken(0);
        platform.handleAll(peer.channel);
        long ofOne = Inside.core(server).ledger().held(Resource.REQUEST_BYTES);
        assertThat(ofOne).isPositive();
        for (int slot = 1; slot <= MAX_AT_ONCE; slot++) {
            peer.requestWithToken(slot);
            platform.handleAll(peer.channel);
        }
        peer.read();
        platform.handle(0);
        platform.settle(peer.channel);
        // the others have begun, and before a thread comes to them their caller has much to read again
        platform.reads(peer.channel, false);
        peer.request(LARGE_SLOT - 1, "large");
        platform.handle(MAX_AT_ONCE);
        platform.handleAll(peer.channel);
        assertThat(peer.ends()).containsEntry(0, "REPLY").doesNotContainKey(MAX_AT_ONCE);
        assertThat(Inside.core(server).ledger().held(Resource.REQUEST_BYTES))
                .as("the last, as the replies of the others wait")
                .isEqualTo(ofOne);
        peer.read();
        platform.handleAll(peer.channel);
        assertThat(peer.ends()).containsEntry(MAX_AT_ONCE, "REPLY");
        assertThat(Inside.core(server).ledger().held(Resource.REQUEST_BYTES)).isZero();
    }

    /** Otherwise the event loop would never learn that they have begun, and nothing else would begin. */
    @Test
    void whatWaitsIsBegunAlsoWhereThreadsHaveNoMemoryToSayThatTheyHaveBegun() {
        Account account = Objects.requireNonNull(Inside.core(server).ledger().open(null));
        HandChannel channel = new HandChannel(platform.ticker);
        channel.pipeline().addLast(new ServerConnection(channel, Inside.core(server), account, 0));
        Peer peer = new Peer(channel);
        peer.stopReading();
        peer.requests(MANY, "quick");
        peer.read();
        assertThat(Inside.core(server).running()).isEqualTo(MAX_AT_ONCE);
        channel.loop.fails = true;
        for (int i = 0; i < MAX_AT_ONCE; i++) {
            platform.handle(0);
        }
        channel.loop.fails = false;
        peer.connection().endLost();
        platform.handleAll(channel);
        assertThat(peer.ends()).hasSize(MANY);
        channel.close();
        platform.handleAll(channel);
        account.close();
    }

    @Test
    void callsThatHaveWaitedTakeTheirPlacesOneAfterTheOtherWhereNotAllCanRunAtOnce() {
        server = server(20);
        Peer peer = new Peer();
        peer.stopReading();
        peer.requests(MANY, "quick");
        assertThat(peer.ends()).isEmpty();
        peer.read();
        assertThat(Inside.core(server).running()).isLessThan(MANY / 2);
        platform.handleAll(peer.channel);
        Map<Integer, Object> ends = peer.ends();
        assertThat(ends).hasSize(MANY).doesNotContainValue(RPCXException.Code.OVERLOADED);
        assertThat(Inside.core(server).running()).isZero();
    }

    @Test
    void aCallThatHasWaitedIsRefusedWhereItsConnectionRunsNothingAndNoPlaceIsLeft() {
        server = server(4);
        Peer peer = new Peer();
        peer.stopReading();
        peer.requests(1, "quick");
        // the places of all handlers go to others meanwhile
        new Peer().requests(3, "waits");
        new Peer().requests(1, "waits");
        assertThat(Inside.core(server).running()).isEqualTo(4);
        peer.read();
        assertThat(peer.ends()).containsEntry(0, RPCXException.Code.OVERLOADED);
    }

    /** The server sends nothing as it gives the future up, since it has answered the caller before. */
    @Test
    void aCallThatWaitsForAPlaceBeginsWhenAFutureOfItsConnectionIsGivenUp() {
        server = server(AdmissionLimit.MIN_LIMIT);
        Peer peer = new Peer();
        peer.stopReading();
        peer.requests(4, "waits");
        peer.read();
        platform.handleAll(peer.channel);
        assertThat(service.waiting).hasSize(3);
        peer.cancel(1);
        platform.handleAll(peer.channel);
        platform.pass(peer.channel, 999, TimeUnit.MILLISECONDS);
        platform.handleAll(peer.channel);
        assertThat(service.waiting).hasSize(3);
        platform.pass(peer.channel, 1, TimeUnit.MILLISECONDS);
        platform.handleAll(peer.channel);
        assertThat(service.waiting).hasSize(4);
    }

    @Test
    void aCallThatIsCancelledWhileItWaitsEndsAtOnceWhereverItStands() {
        Peer peer = new Peer();
        peer.stopReading();
        peer.requests(5, "quick");
        for (int slot : new int[] {2, 0, 4}) {
            peer.cancel(slot);
        }
        peer.read();
        platform.handleAll(peer.channel);
        RPCXException.Code cancelled = RPCXException.Code.CANCELLED;
        assertThat(peer.ends())
                .containsEntry(0, cancelled)
                .containsEntry(1, "REPLY")
                .containsEntry(2, cancelled)
                .containsEntry(3, "REPLY")
                .containsEntry(4, cancelled);
    }

    @Test
    void aCallWhoseTimeIsOverWhileItWaitsIsNotExecuted() {
        Peer peer = new Peer();
        peer.stopReading();
        peer.requests(1, "waits");
        platform.pass(peer.channel, GIVEN_MILLIS + 1, TimeUnit.MILLISECONDS);
        peer.read();
        platform.handleAll(peer.channel);
        assertThat(service.waiting).isEmpty();
        assertThat(peer.ends()).containsEntry(0, RPCXException.Code.DEADLINE_EXCEEDED);
    }

    @Test
    void theTimeThatACallWaitsForItsCallerToReadDoesNotLowerTheLimitOfItsMethod() {
        Peer other = new Peer();
        // one call runs all the time, since the limit learns nothing from a handler that is alone
        other.requests(1, "waits");
        CompletableFuture<String> first = service.waiting.remove();
        Peer peer = new Peer();
        int most = limit("waits").limit();
        platform.pass(peer.channel, 150, TimeUnit.MILLISECONDS);
        peer.requests(MANY, "waits");
        service.endAll();
        platform.handleAll(peer.channel);
        peer.stopReading();
        peer.requests(MANY, "waits");
        platform.pass(peer.channel, GIVEN_MILLIS - 50, TimeUnit.MILLISECONDS);
        peer.read();
        platform.handleAll(peer.channel);
        assertThat(service.waiting).hasSize(MANY);
        service.endAll();
        platform.handleAll(peer.channel);
        // the end of one more call, a step later, has the limit look at the calls before it
        platform.pass(peer.channel, 150, TimeUnit.MILLISECONDS);
        peer.requests(1, "waits");
        service.endAll();
        assertThat(limit("waits").limit()).isEqualTo(most);
        first.complete("done");
    }

    @Test
    void streamsWaitBeforeTheyBeginWhileItemsOfTheirConnectionWaitAndBeginAsTheirCallerReads() {
        Peer peer = new Peer();
        peer.postponedStreams();
        assertThat(Inside.core(server).ledger().held(Resource.ITEM_BYTES_OUT)).isBetween(1L << 20, 3L << 20);
        assertThat(peer.ends()).isEmpty();
        assertThat(Inside.core(server).running()).isZero();
        peer.read();
        platform.handleAll(peer.channel);
        assertThat(peer.ends())
                .hasSize(STREAMS)
                .containsValue("REPLY")
                .doesNotContainValue(RPCXException.Code.OVERLOADED);
        assertThat(peer.items).isEqualTo(STREAMS);
        assertThat(service.begun).isEqualTo(STREAMS);
    }

    @Test
    void callsWithOneReplyAreNotHeldBackByItems() {
        Peer peer = new Peer();
        peer.postponedStreams();
        peer.requests(MANY, "waits");
        assertThat(service.waiting).hasSize(MANY);
    }

    @Test
    void streamsAreHeldBackByReplies() {
        Peer peer = new Peer();
        peer.stopReading();
        peer.streams(1, 1, ALL_THERE_IS);
        platform.handleAll(peer.channel);
        assertThat(service.begun).isZero();
        peer.read();
        platform.handleAll(peer.channel);
        assertThat(service.begun).isEqualTo(1);
        assertThat(peer.ends()).containsEntry(0, "REPLY");
    }

    @Test
    void aStreamThatIsCancelledWhileItWaitsIsNotBegun() {
        Peer peer = new Peer();
        peer.postponedStreams();
        List<Integer> cancelled = List.of(STREAMS - 1, MAX_BEGUN, STREAMS / 2);
        cancelled.forEach(peer::cancel);
        peer.read();
        platform.handleAll(peer.channel);
        Map<Integer, Object> ends = peer.ends();
        assertThat(ends).hasSize(STREAMS);
        ends.forEach((slot, end) ->
                assertThat(end).isEqualTo(cancelled.contains(slot) ? RPCXException.Code.CANCELLED : "REPLY"));
        assertThat(service.begun).isEqualTo(STREAMS - cancelled.size());
    }

    @Test
    void streamsWhoseTimeIsOverWhileTheyWaitAreNotBegun() {
        Peer peer = new Peer();
        peer.postponedStreams();
        int begun = service.begun;
        platform.pass(peer.channel, GIVEN_MILLIS + 1, TimeUnit.MILLISECONDS);
        platform.handleAll(peer.channel);
        assertThat(Inside.core(server).ledger().held(Resource.REQUEST_BYTES)).isZero();
        peer.read();
        platform.handleAll(peer.channel);
        assertThat(service.begun).isEqualTo(begun);
        assertThat(peer.ends().values()).hasSize(STREAMS).containsOnly(RPCXException.Code.DEADLINE_EXCEEDED);
    }

    @Test
    void streamsWhoseConnectionEndsWhileTheyWaitAreNotBegun() {
        Peer peer = new Peer();
        peer.postponedStreams();
        int begun = service.begun;
        peer.channel.close();
        platform.handleAll(peer.channel);
        assertThat(service.begun).isEqualTo(begun);
    }

    @Test
    void creditThatComesWhileAStreamWaitsIsKept() {
        Peer peer = new Peer();
        peer.postponedStreams();
        peer.streams(1, 3, 1);
        platform.handleAll(peer.channel);
        peer.send(credit(id(STREAMS), 1));
        peer.send(credit(id(STREAMS), 1));
        peer.read();
        platform.handleAll(peer.channel);
        assertThat(peer.ends()).containsEntry(STREAMS, "REPLY");
        assertThat(peer.items).isEqualTo(STREAMS + 3);
    }

    /**
     * For a moment, the streams look as if they were about to produce much. Meanwhile none of them is given to its
     * thread again and again.
     */
    @Test
    void streamsThatMakeNothingKeepNoOtherFromBeginning() {
        Peer peer = new Peer();
        peer.streams(STREAMS, 1, 0);
        int tasks = 0;
        while (platform.handle(0)) {
            platform.settle(peer.channel);
            tasks++;
        }
        assertThat(service.begun).isEqualTo(STREAMS);
        assertThat(tasks).isLessThan(4 * STREAMS);
        assertThat(peer.ends()).isEmpty();
    }

    /** Returns how many of many calls run when their caller has read all but so many bytes, and none has ended. */
    private int begunWithUnread(long bytes) {
        Peer peer = new Peer();
        peer.stopReading();
        peer.requests(MANY, "waits");
        Charge unread = peer.unread(bytes);
        peer.read();
        platform.handleAll(peer.channel);
        assertThat(Inside.core(server).ledger().held(Resource.REPLY_BYTES)).isEqualTo(bytes);
        int begun = service.waiting.size();
        if (begun > 0) {
            service.endAll();
            platform.handleAll(peer.channel);
            assertThat(service.waiting).as("those that come behind the first").hasSize(Math.min(begun, MANY - begun));
        }
        service.endAll();
        unread.release();
        peer.channel.close();
        platform.handleAll(peer.channel);
        service.endAll();
        platform.handleAll(peer.channel);
        return begun;
    }

    @Test
    void whoHasReadAllButAQuarterOfAMebibyteIsNotHeldBackAndWhoHasReadLessRunsAFewAtOnce() {
        assertThat(begunWithUnread(MEBIBYTE / 4)).isEqualTo(MANY);
        assertThat(begunWithUnread(MEBIBYTE / 4 + Charge.STEP_BYTES)).isEqualTo(MAX_AT_ONCE);
        assertThat(begunWithUnread(MEBIBYTE)).isEqualTo(MAX_AT_ONCE);
        assertThat(begunWithUnread(MEBIBYTE + Charge.STEP_BYTES)).isZero();
    }

    @Test
    void aStreamWaitsFromTheFirstByteBeyondAMebibyte() {
        Peer peer = new Peer();
        Charge unread = peer.unread(MEBIBYTE);
        peer.streams(1, 1, 0);
        platform.handleAll(peer.channel);
        assertThat(service.begun).isEqualTo(1);
        assertThat(unread.add(Charge.STEP_BYTES)).isTrue();
        peer.streams(1, 1, 0);
        platform.handleAll(peer.channel);
        assertThat(service.begun).isEqualTo(1);
        unread.release();
    }

    /** A client that reads a little again and again gets new streams, although much is made for it all the time. */
    @Test
    void eachTimeThatTheSocketTakesMoreOneStreamBeginsHoweverMuchIsUnread() {
        Peer peer = new Peer();
        Charge unread = peer.unread(3 * MEBIBYTE);
        peer.streams(MANY, 1, 0);
        platform.handleAll(peer.channel);
        assertThat(service.begun).isZero();
        for (int i = 1; i <= 3; i++) {
            platform.reads(peer.channel, false);
            assertThat(Inside.core(server).running()).isZero();
            peer.read();
            assertThat(Inside.core(server).running()).isEqualTo(1);
            platform.handleAll(peer.channel);
            assertThat(service.begun).isEqualTo(i);
        }
        for (int i = 1; i <= MAX_AT_ONCE + 3; i++) {
            platform.reads(peer.channel, false);
            peer.read();
            assertThat(Inside.core(server).running()).isEqualTo(Math.min(i, MAX_AT_ONCE));
        }
        platform.handleAll(peer.channel);
        unread.release();
    }

    @Test
    void whereNoStreamWaitsNoneBeginsAsTheSocketTakesMore() {
        Peer peer = new Peer();
        platform.reads(peer.channel, false);
        peer.read();
        peer.requests(1, "quick");
        assertThat(peer.ends()).containsEntry(0, "REPLY");
    }

    @Test
    void aCallThatFindsThatItsCallerHasReadMeanwhileBeginsAtOnce() {
        Peer peer = new Peer();
        Charge unread = peer.unread(2 * MEBIBYTE);
        peer.connection().replyHeld();
        unread.release();
        peer.requests(1, "waits");
        assertThat(service.waiting).hasSize(1);
    }

    /** The request takes room that others want. A client that reads nothing would hold it for the call's whole time. */
    @Test
    void aCallWaitsForItsReaderNoLongerThanASmallRequestMayTake() {
        server = Inside.on(Server.builder(RegistryServer.registry(service)), platform)
                .keepAlive(Duration.ofHours(1))
                .build()
                .start();
        Peer peer = new Peer();
        Charge unread = peer.unread(2 * MEBIBYTE);
        peer.connection().replyHeld();
        platform.pass(peer.channel, 5, TimeUnit.SECONDS);
        for (String method : List.of("quick", "items")) {
            ByteBuf payload = RawPeer.prelude("postponed", method);
            Varint.write(payload, TimeUnit.HOURS.toMicros(1));
            peer.send(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.TIME, id(peer.sent++), payload));
            platform.handleAll(peer.channel);
        }
        platform.pass(peer.channel, 59_999, TimeUnit.MILLISECONDS);
        assertThat(peer.ends()).isEmpty();
        assertThat(Inside.core(server).ledger().held(Resource.REQUEST_BYTES)).isPositive();
        // looks are 5 ms apart at least
        platform.pass(peer.channel, 6, TimeUnit.MILLISECONDS);
        assertThat(peer.ends())
                .containsExactlyInAnyOrderEntriesOf(
                        Map.of(0, RPCXException.Code.DEADLINE_EXCEEDED, 1, RPCXException.Code.DEADLINE_EXCEEDED));
        assertThat(service.begun).isZero();
        assertThat(Inside.core(server).ledger().held(Resource.REQUEST_BYTES)).isZero();
        unread.release();
    }

    @Test
    void whatComesFromACallerThatHasReadShowsThatNothingHasToWait() {
        Peer peer = new Peer();
        ServerMethod quick =
                Objects.requireNonNull(Inside.core(server).method(MethodDictionary.key("postponed", "quick")));
        Charge unread = peer.unread(2 * MEBIBYTE);
        peer.connection().replyHeld();
        assertThat(peer.connection().isCongested(quick)).isTrue();
        unread.release();
        peer.send(RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER));
        assertThat(peer.connection().isCongested(quick)).isFalse();
    }

    @Test
    void allCallsForWhichThereIsNoPlaceAreRefusedTogether() {
        server = server(4);
        Peer peer = new Peer();
        peer.stopReading();
        peer.requests(3, "quick");
        new Peer().requests(3, "waits");
        new Peer().requests(1, "waits");
        assertThat(Inside.core(server).running()).isEqualTo(4);
        peer.read();
        RPCXException.Code refused = RPCXException.Code.OVERLOADED;
        assertThat(peer.ends())
                .containsEntry(0, refused)
                .containsEntry(1, refused)
                .containsEntry(2, refused);
    }

    @Test
    void callsThatHaveWaitedAndWaitForAThreadEndWithTheirConnection() {
        Peer peer = waitsForThePool(3);
        assertThat(Inside.core(server).ledger().held(Resource.REQUEST_BYTES)).isPositive();
        peer.channel.close();
        platform.settle(peer.channel);
        assertThat(Inside.core(server).running()).isEqualTo(1);
        assertThat(Inside.core(server).ledger().held(Resource.CALLS))
                .as("that of the other")
                .isEqualTo(1);
        assertThat(Inside.core(server).ledger().held(Resource.REQUEST_BYTES)).isZero();
    }

    @Test
    void callsThatHaveWaitedAndWaitForAThreadUntilTheirTimeIsOverMakeRoomForOthers() {
        Peer peer = waitsForThePool(MAX_AT_ONCE);
        platform.pass(peer.channel, GIVEN_MILLIS + 1, TimeUnit.MILLISECONDS);
        assertThat(peer.ends().values()).hasSize(MAX_AT_ONCE).containsOnly(RPCXException.Code.DEADLINE_EXCEEDED);
        assertThat(Inside.core(server).ledger().held(Resource.REQUEST_BYTES)).isZero();
        // as many calls may start as before
        platform.reads(peer.channel, false);
        peer.request(LARGE_SLOT - 1, "large");
        platform.handleAll(peer.channel);
        peer.requests(MAX_AT_ONCE, "quick");
        peer.read();
        platform.handleAll(peer.channel);
        Map<Integer, Object> ends = peer.ends();
        for (int slot = MAX_AT_ONCE; slot < 2 * MAX_AT_ONCE; slot++) {
            assertThat(ends).containsEntry(slot, "REPLY");
        }
    }

    /** A thread of the call may run for long. Only what has not been sent counts as unread. */
    @Test
    void aReplyThatHasBeenSentKeepsNoOtherCallWaitingWhileAThreadOfItsCallRuns() {
        Peer peer = new Peer();
        platform.reads(peer.channel, false);
        peer.request(LARGE_SLOT, "largeAndEarly");
        platform.handle(0);
        platform.settle(peer.channel);
        assertThat(Inside.core(server).ledger().held(Resource.REPLY_BYTES)).isGreaterThan(MEBIBYTE);
        peer.read();
        assertThat(Inside.core(server).ledger().held(Resource.REPLY_BYTES)).isZero();
        peer.request(0, "quick");
        // the subscriber is the first that waits for a thread
        platform.handle(1);
        platform.settle(peer.channel);
        assertThat(peer.ends()).containsEntry(0, "REPLY");
    }
}
