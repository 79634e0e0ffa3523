package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.HandChannel;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Claim;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Outbound;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.handler.ssl.NotSslRecordException;
import io.netty.util.concurrent.MockTicker;
import io.netty.util.concurrent.Ticker;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests TLS records in front of an engine that only counts them, under a simulated clock. A record whose content begins
 * with 1 contains data.
 */
class TlsRecordsTest {
    private static final int HEADER = 5;
    private static final int MAX_CONTENT = (1 << 14) + 256;
    private static final int POOL_BYTES = 1024 * 1024;
    private static final int MAX_SILENT = 1024;
    private static final int HANDSHAKE = 22;
    private static final int DATA = 23;
    private static final long RECORD_SECONDS = 20;

    /** Length of a record that has the size of a KeyUpdate: its header, one byte, and the bytes that seal it. */
    private static final int SEALED = HEADER + 1 + 16;

    private final MockTicker ticker = Ticker.newMockTicker();
    private final HandChannel channel = new HandChannel(ticker);
    private final Ledger ledger =
            new Ledger("records", Map.of(Resource.FRAME_BYTES, (long) POOL_BYTES), Map.of(), Integer.MAX_VALUE);
    private final Account account = open("10.0.0.1");
    private final TlsRecords records =
            new TlsRecords(channel, account, TimeUnit.SECONDS.toNanos(RECORD_SECONDS), MAX_SILENT);

    /** Lengths of the records that have come to the engine. */
    private final List<Integer> passed = new ArrayList<>();

    private final List<Throwable> thrown = new ArrayList<>();
    private final List<Object> told = new ArrayList<>();
    private int rounds;
    private int parts;
    private int opened;

    /** What was charged when the handlers behind learnt of the end; -1 before that. */
    private long heldAtEnd = -1;

    TlsRecordsTest() {
        channel.pipeline()
                .addLast(records)
                .addLast(new ChannelInboundHandlerAdapter() {
                    @Override
                    public void channelRead(ChannelHandlerContext ctx, Object message) {
                        ByteBuf record = (ByteBuf) message;
                        passed.add(record.readableBytes());
                        boolean hasData =
                                record.readableBytes() > HEADER && record.getByte(record.readerIndex() + HEADER) == 1;
                        record.release();
                        if (hasData) {
                            ctx.fireChannelRead("data");
                        }
                    }
                })
                .addLast(records.opened())
                .addLast(new ChannelInboundHandlerAdapter() {
                    @Override
                    public void channelRead(ChannelHandlerContext ctx, Object message) {
                        opened++;
                    }

                    @Override
                    public void channelReadComplete(ChannelHandlerContext ctx) {
                        rounds++;
                    }

                    @Override
                    public void userEventTriggered(ChannelHandlerContext ctx, Object event) {
                        assertThat(ctx.channel().isActive()).isTrue();
                        if (event == SocketQueue.PART) {
                            parts++;
                        } else {
                            told.add(event);
                        }
                    }

                    @Override
                    public void channelInactive(ChannelHandlerContext ctx) {
                        heldAtEnd = held();
                    }

                    @Override
                    public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
                        thrown.add(cause);
                    }
                });
        // code that takes a point in time for a difference fails with this
        ticker.advance(1_000, TimeUnit.SECONDS);
    }

    private Account open(String address) {
        try {
            return Objects.requireNonNull(ledger.open(new InetSocketAddress(InetAddress.getByName(address), 1)));
        } catch (java.net.UnknownHostException e) {
            throw new IllegalArgumentException(e);
        }
    }

    @AfterEach
    void nothingIsLeft() {
        channel.close();
        account.close();
        assertThat(ledger.audit()).isEmpty();
        channel.checkException();
    }

    private static ByteBuf record(int type, int content, int first) {
        ByteBuf record = Unpooled.buffer().writeByte(type).writeShort(0x0303).writeShort(content);
        return content == 0 ? record : record.writeByte(first).writeZero(content - 1);
    }

    private static ByteBuf record(int content) {
        return record(HANDSHAKE, content, 0);
    }

    private static ByteBuf data(int content) {
        return record(DATA, content, 1);
    }

    /** Has the bytes arrive together, and checks that nothing keeps them. */
    private void read(ByteBuf bytes) {
        ByteBuf in = bytes.copy();
        channel.pipeline().fireChannelRead(in);
        channel.pipeline().fireChannelReadComplete();
        channel.runPendingTasks();
        assertThat(in.refCnt()).isZero();
    }

    private void read(ByteBuf bytes, int count) {
        read(bytes.readSlice(count));
    }

    private long held() {
        return ledger.held(Resource.FRAME_BYTES);
    }

    private long timers() {
        return ledger.held(Resource.TIMERS);
    }

    private void pass(long seconds) {
        ticker.advance(seconds, TimeUnit.SECONDS);
        channel.runPendingTasks();
    }

    // ---- what those behind hear of a record on its way

    @Test
    void aRecordThatIsOnItsWayIsHeardOf() {
        records.handshaken();
        ByteBuf record = data(100);
        for (int second = 0; second < RECORD_SECONDS; second++) {
            read(record, 1);
            assertThat(parts).isEqualTo(second + 1);
            pass(1);
        }
        int before = parts;
        read(record, 1);
        assertThat(parts).as("no peer is alive for a byte now and then").isEqualTo(before);
        read(record);
        assertThat(opened).isEqualTo(1);
        assertThat(parts).as("whole").isEqualTo(before);
        read(data(100), HEADER + 1);
        assertThat(parts).as("another one").isEqualTo(before + 1);
    }

    // ---- where a record begins and ends

    @Test
    void wholeRecordsArePassedOneByOne() {
        records.handshaken();
        read(Unpooled.wrappedBuffer(data(100), data(1), data(MAX_CONTENT)));
        assertThat(passed).containsExactly(HEADER + 100, HEADER + 1, HEADER + MAX_CONTENT);
        assertThat(opened).isEqualTo(3);
        assertThat(rounds).isEqualTo(1);
        assertThat(held()).isZero();
    }

    @Test
    void aRecordIsPassedWholeWhereverItIsCut() {
        records.handshaken();
        for (int cut = 1; cut < HEADER + 10; cut++) {
            passed.clear();
            ByteBuf record = data(10);
            read(record, cut);
            assertThat(passed).isEmpty();
            read(Unpooled.wrappedBuffer(record, data(0), data(2)));
            assertThat(passed).as("cut at " + cut).containsExactly(HEADER + 10, HEADER, HEADER + 2);
        }
    }

    @Test
    void aRecordThatComesByteForByteIsPassedWhole() {
        records.handshaken();
        ByteBuf record = data(600);
        while (record.isReadable()) {
            assertThat(passed).isEmpty();
            read(record, 1);
        }
        assertThat(passed).containsExactly(HEADER + 600);
    }

    @Test
    void theLargestRecordIsPassedWhereverItIsCut() {
        records.handshaken();
        for (int cut : new int[] {
            1, HEADER, HEADER + 1, 1_000, Outbound.MAX_SMALL_BYTES, Outbound.MAX_SMALL_BYTES + 1, MAX_CONTENT
        }) {
            passed.clear();
            ByteBuf record = data(MAX_CONTENT);
            read(record, cut);
            read(record);
            assertThat(passed).containsExactly(HEADER + MAX_CONTENT);
            assertThat(held()).isZero();
        }
    }

    @Test
    void theBeginOfTheNextRecordIsNotTakenForTheEndOfTheLast() {
        records.handshaken();
        ByteBuf tiny =
                Unpooled.wrappedBuffer(data(0), data(1), data(0), data(2)).copy();
        read(tiny, 3);
        read(tiny);
        assertThat(passed).containsExactly(HEADER, HEADER + 1, HEADER, HEADER + 2);
    }

    @Test
    void onlyTheTypesAndLengthsThatARecordHasAreTaken() {
        for (int type = 20; type <= 23; type++) {
            read(record(type, 1, 0));
        }
        assertThat(channel.isActive()).isTrue();
        assertThat(passed).hasSize(4);
        read(record(MAX_CONTENT));
        assertThat(passed).hasSize(5);
        assertThat(thrown).isEmpty();
    }

    private void isNoRecord(ByteBuf header) {
        read(header);
        assertThat(channel.isActive()).isFalse();
        assertThat(passed).isEmpty();
        assertThat(thrown).hasSize(1).first().isInstanceOf(NotSslRecordException.class);
        assertThat(ByteBufUtil.hexDump(channel.<ByteBuf>readOutbound()))
                .as("the alert unexpected_message")
                .isEqualTo("1503030002020a");
    }

    /** Once TLS has begun, a peer without its keys cannot have sent this, and an alert would have to be encrypted. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void onlyWhatComesFirstIsAnsweredByAnAlert(boolean isHandshaken) {
        read(record(1));
        if (isHandshaken) {
            records.handshaken();
        }
        read(record(19, 0, 0));
        assertThat(channel.isActive()).isFalse();
        assertThat(thrown).hasSize(1);
        Object answer = channel.readOutbound();
        assertThat(answer).isNull();
    }

    @Test
    void aTypeBelowTheFirstEndsTheConnectionAndItHearsWhy() {
        isNoRecord(record(19, 0, 0));
    }

    @Test
    void aTypeAboveTheLastEndsTheConnectionAndItHearsWhy() {
        isNoRecord(record(24, 0, 0));
    }

    @Test
    void aLengthThatIsTooLargeByOneEndsTheConnectionAndItHearsWhy() {
        isNoRecord(Unpooled.buffer().writeByte(DATA).writeShort(0x0303).writeShort(MAX_CONTENT + 1));
    }

    /** The TLS engine would make a text of all bytes of such a record. */
    @Test
    void aVersionThatNoTlsHasEndsTheConnectionAndItHearsWhy() {
        isNoRecord(
                Unpooled.buffer().writeByte(22).writeShort(0x0100).writeShort(2).writeZero(2));
    }

    @Test
    void aHeaderInPiecesThatIsNoneEndsTheConnectionAndItHearsWhy() {
        ByteBuf header = Unpooled.buffer().writeByte(DATA).writeShort(0x0303).writeShort(MAX_CONTENT + 1);
        read(header, 2);
        isNoRecord(header);
    }

    @Test
    void whatComesBehindTheEndIsNotLookedAt() {
        read(Unpooled.wrappedBuffer(record(24, 0, 0), record(10), record(10)));
        assertThat(passed).isEmpty();
        assertThat(thrown).hasSize(1);
    }

    @Test
    void behindTheEndNothingIsTakenOrHeldThoughTheChannelIsStillThere() {
        channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void close(ChannelHandlerContext ctx, ChannelPromise promise) {
                // the channel is closed a little later
            }
        });
        read(record(8_000));
        assertThat(held()).isPositive();
        passed.clear();
        read(Unpooled.wrappedBuffer(record(24, 0, 0), record(10)));
        assertThat(channel.isActive()).isTrue();
        assertThat(passed).isEmpty();
        assertThat(held()).isZero();
        read(record(10));
        assertThat(passed).isEmpty();
        channel.pipeline().removeFirst();
    }

    // ---- what is kept is charged

    @Test
    void aTimerThatCannotBeSetIsNotCharged() {
        HandChannel other = new HandChannel(ticker);
        Account its = open("10.0.0.2");
        other.pipeline().addLast(new TlsRecords(other, its, TimeUnit.SECONDS.toNanos(RECORD_SECONDS), MAX_SILENT));
        other.loop.failingTimers = 1;
        other.pipeline().fireChannelRead(record(MAX_CONTENT).readBytes(Outbound.MAX_SMALL_BYTES + 1));
        assertThatThrownBy(other::checkException).isInstanceOf(OutOfMemoryError.class);
        other.close();
        its.close();
        assertThat(timers()).isZero();
    }

    @Test
    void theBeginOfARecordIsChargedFromTheFirstByteThatIsMoreThanALittle() {
        records.handshaken();
        ByteBuf record = data(MAX_CONTENT);
        read(record, Outbound.MAX_SMALL_BYTES);
        assertThat(held()).isZero();
        assertThat(timers()).isZero();
        read(record, 1);
        assertThat(held()).isEqualTo(HEADER + MAX_CONTENT);
        assertThat(timers()).isEqualTo(1);
        read(record, 1_000);
        assertThat(held()).isEqualTo(HEADER + MAX_CONTENT);
        assertThat(timers()).isEqualTo(1);
        read(record);
        assertThat(held()).isZero();
    }

    @Test
    void aRecordWhoseHeaderCameAloneIsChargedWhole() {
        for (int header = 1; header <= HEADER + 1; header++) {
            ByteBuf record = data(10_000);
            read(record, header);
            read(record, 5_000);
            assertThat(held()).isEqualTo(HEADER + 10_000 + silentBytes());
            read(record);
        }
    }

    /** The record is charged before the round of reading ends, which would check it once more. */
    @Test
    void aRecordWhoseHeaderCameAloneIsChargedAtOnce() {
        ByteBuf record = data(10_000);
        read(record, HEADER);
        channel.pipeline().fireChannelRead(record.readSlice(5_000).copy());
        assertThat(held()).isEqualTo(HEADER + 10_000);
    }

    /** Returns the bytes that count as silent. All records so far are of the handshake. */
    private long silentBytes() {
        long bytes = passed.stream().mapToInt(Integer::intValue).sum();
        return bytes > Outbound.MAX_SMALL_BYTES ? bytes : 0;
    }

    @Test
    void aRecordForWhichThereIsNoRoomEndsItsConnectionAndLeavesNothing() {
        Account other = open("10.0.0.2");
        Charge all = other.charge(Resource.FRAME_BYTES);
        assertThat(all.set(POOL_BYTES - 10_000)).isTrue();
        ByteBuf record = data(MAX_CONTENT);
        read(record, 100);
        read(record);
        assertThat(channel.isActive()).isFalse();
        assertThat(told).containsExactly(SocketQueue.NO_ROOM);
        assertThat(passed).isEmpty();
        assertThat(timers()).isZero();
        assertThat(held()).isEqualTo(POOL_BYTES - 10_000);
        all.release();
        other.close();
    }

    @Test
    void aHandshakeIsChargedWithTheRecordThatHasBegun() {
        read(record(3_000));
        assertThat(held()).isZero();
        read(record(Outbound.MAX_SMALL_BYTES - 3_000 - 2 * HEADER));
        assertThat(held()).as("of just a little").isZero();
        ByteBuf record = record(10_000);
        read(record, 5_000);
        assertThat(held()).as("of what has begun").isEqualTo(HEADER + 10_000);
        read(record);
        assertThat(held()).isEqualTo(Outbound.MAX_SMALL_BYTES + HEADER + 10_000);
        ByteBuf more = record(5_000);
        read(more, 4_500);
        assertThat(held()).isEqualTo(Outbound.MAX_SMALL_BYTES + 2 * HEADER + 15_000);
        records.handshaken();
        read(more);
        assertThat(held()).as("it brings no data").isEqualTo(HEADER + 5_000);
        read(data(1));
        assertThat(held()).as("the engine has kept nothing").isZero();
    }

    /** Another record of the same size that has stalled for longer ends, and not this one, which has gone on. */
    @Test
    void aRecordThatBeginsHasWaitedOnlySinceThen() {
        read(record(10_000));
        assertThat(held()).isPositive();
        ticker.advance(5, TimeUnit.SECONDS);
        Account other = open("10.0.0.2");
        boolean[] isEnded = new boolean[1];
        Claim older = new Claim(other, Resource.FRAME_BYTES, channel.eventLoop(), () -> isEnded[0] = true);
        assertThat(older.set(20_000, ticker.nanoTime())).isTrue();
        ticker.advance(5, TimeUnit.SECONDS);
        read(record(10_000), 5_000);
        ticker.advance(1, TimeUnit.SECONDS);
        Claim large = new Claim(other, Resource.FRAME_BYTES, channel.eventLoop(), () -> {});
        assertThat(large.set(POOL_BYTES - 30_000, ticker.nanoTime())).isTrue();
        assertThat(isEnded[0]).isTrue();
        assertThat(channel.isActive()).isTrue();
        older.close();
        large.close();
        other.close();
    }

    @Test
    void theChannelsEndGivesAllBackBeforeOthersHearOfIt() {
        read(data(MAX_CONTENT), 5_000);
        assertThat(held()).isPositive();
        channel.unsafe().close(channel.newPromise());
        channel.runPendingTasks();
        assertThat(heldAtEnd).isZero();
        assertThat(timers()).isZero();
        assertThat(channel.runScheduledPendingTasks()).as("no timer is set").isEqualTo(-1);
    }

    @Test
    void whereItIsTakenOutOfThePipelineItHoldsNothing() {
        read(data(MAX_CONTENT), 5_000);
        assertThat(held()).isPositive();
        channel.pipeline().remove(records);
        assertThat(held()).isZero();
        assertThat(timers()).isZero();
        assertThat(channel.isActive()).isTrue();
    }

    @Test
    void whoEndsInTheMidstOfARecordSetsNoTimer() {
        ByteBuf record = data(MAX_CONTENT);
        read(record, 5_000);
        read(record, 5_000);
        pass(RECORD_SECONDS);
        assertThat(channel.isActive()).isFalse();
        assertThat(timers()).isZero();
        assertThat(channel.runScheduledPendingTasks()).isEqualTo(-1);
    }

    // ---- its time

    @Test
    void aTimerThatCouldNotBeSetIsNotCounted() {
        channel.loop.failingTimers = 1;
        read(data(MAX_CONTENT), 5_000);
        assertThat(channel.loop.failingTimers).isZero();
        assertThat(thrown).hasSize(1);
        assertThat(thrown.get(0)).isInstanceOf(OutOfMemoryError.class);
        assertThat(timers()).isZero();
    }

    @Test
    void aRecordThatIsNotWholeInItsTimeEndsTheConnection() {
        ByteBuf record = data(MAX_CONTENT);
        read(record, 5_000);
        pass(RECORD_SECONDS - 1);
        read(record, 5_000);
        assertThat(channel.isActive()).isTrue();
        pass(1);
        assertThat(channel.isActive()).isFalse();
        assertThat(told).isEmpty();
        assertThat(held()).isZero();
    }

    @Test
    void theTimeOfARecordStandsStillWhileNothingIsRead() {
        ReadingClock readingClock = ReadingClock.of(channel);
        ByteBuf record = data(MAX_CONTENT);
        read(record, 5_000);
        pass(RECORD_SECONDS - 10);
        readingClock.setReading(false);
        assertThat(channel.config().isAutoRead()).isFalse();
        pass(3 * RECORD_SECONDS);
        assertThat(timers()).isEqualTo(1);
        readingClock.setReading(true);
        assertThat(channel.config().isAutoRead()).isTrue();
        pass(9);
        assertThat(channel.isActive()).isTrue();
        pass(1);
        assertThat(channel.isActive()).isFalse();
        assertThat(held()).isZero();
    }

    @Test
    void eachRecordHasItsTimeFromItsOwnBeginAndOneTimerServesAll() {
        records.handshaken();
        ByteBuf first = data(MAX_CONTENT);
        read(first, 5_000);
        pass(RECORD_SECONDS - 5);
        read(first);
        assertThat(timers()).isEqualTo(1);
        ByteBuf second = data(MAX_CONTENT);
        // a few bytes alone are not timed
        read(second, Outbound.MAX_SMALL_BYTES);
        read(second, 1);
        pass(5);
        assertThat(channel.isActive()).isTrue();
        assertThat(timers()).isEqualTo(1);
        pass(RECORD_SECONDS - 6);
        assertThat(channel.isActive()).isTrue();
        pass(1);
        assertThat(channel.isActive()).isFalse();
    }

    @Test
    void theTimerEndsWhereOnlyALittleIsKept() {
        records.handshaken();
        ByteBuf first = data(MAX_CONTENT);
        read(first, 5_000);
        read(first);
        read(data(MAX_CONTENT), Outbound.MAX_SMALL_BYTES);
        assertThat(timers()).isEqualTo(1);
        pass(RECORD_SECONDS);
        assertThat(timers()).isZero();
        assertThat(channel.isActive()).isTrue();
        pass(RECORD_SECONDS);
        assertThat(channel.isActive()).isTrue();
    }

    // ---- records without data

    /** Sends such records until the connection ends, and returns how many were passed. */
    private int sent(ByteBuf each) {
        int sent = 0;
        passed.clear();
        while (channel.isActive() && sent < 10_000) {
            read(each.duplicate());
            sent++;
        }
        return passed.size();
    }

    @Test
    void aHandshakeInTinyRecordsEndsBehindTheSixtyFourth() {
        assertThat(sent(record(1))).isEqualTo(TlsRecords.MIN_HANDSHAKE_RECORDS);
        assertThat(held()).isZero();
    }

    @Test
    void aHandshakeHasARecordMoreForEach512Bytes() {
        int content = TlsRecords.MIN_RECORD_LIMIT_BYTES / 2 - HEADER;
        // up to the n-th record there may be 64 + n / 2 of them
        assertThat(sent(record(content))).isEqualTo(2 * TlsRecords.MIN_HANDSHAKE_RECORDS);
    }

    @Test
    void aHandshakeInLargeRecordsDoesNotEndByTheirNumber() {
        ByteBuf record = record(TlsRecords.MIN_RECORD_LIMIT_BYTES - HEADER);
        for (int i = 0; i < 1_000; i++) {
            read(record.duplicate());
        }
        assertThat(channel.isActive()).isTrue();
        assertThat(passed).hasSize(1_000);
    }

    @Test
    void whatWasSentInTheHandshakeDoesNotCountBehindIt() {
        for (int i = 0; i < 60; i++) {
            read(record(1));
        }
        records.handshaken();
        assertThat(sent(record(SEALED + 1 - HEADER))).isEqualTo(MAX_SILENT + 1);
    }

    /** The record that exceeds the limit has reached the engine. */
    @ParameterizedTest
    @CsvSource({
        "6, 1",
        "26, 1",
        "27, 1",
        "28, 2",
        "32, 2",
        "33, 3",
        "42, 4",
        "44, 5",
        "47, 5",
        "48, 6",
        "49, 6",
        "522, 100"
    })
    void aRecordCountsAsTheKeyUpdatesOfWhichItMayHaveAPart(int bytes, int weight) {
        records.handshaken();
        assertThat(sent(record(bytes - HEADER))).isEqualTo(MAX_SILENT / weight + 1);
    }

    @Test
    void aRecordOfTheLengthOfTheJdksKeyUpdateCountsAsOne() {
        records.handshaken();
        assertThat(sent(record(TlsRecords.JDK_KEY_UPDATE_BYTES - HEADER))).isEqualTo(MAX_SILENT + 1);
    }

    @Test
    void recordsWithDataCountNothing() {
        records.handshaken();
        for (int i = 0; i < 3 * MAX_SILENT; i++) {
            read(data(10));
        }
        assertThat(channel.isActive()).isTrue();
        assertThat(sent(record(1))).isEqualTo(MAX_SILENT + 1);
    }

    @Test
    void asManyMayComeAgainAfterAnHourAndNotBefore() {
        records.handshaken();
        for (int i = 0; i < MAX_SILENT; i++) {
            read(record(1));
        }
        pass(TimeUnit.HOURS.toSeconds(1));
        read(record(1));
        assertThat(channel.isActive()).isTrue();
        ticker.advance(TimeUnit.HOURS.toNanos(1) - 1, TimeUnit.NANOSECONDS);
        assertThat(sent(record(1))).isEqualTo(MAX_SILENT);
    }

    @Test
    void oneRecordHasRoomForNoMoreThanAllOfAnHourHoweverLateItComes() {
        records.handshaken();
        int largest = SEALED + 5 * MAX_SILENT;
        read(record(largest - HEADER));
        assertThat(channel.isActive()).isTrue();
        pass(TimeUnit.HOURS.toSeconds(1));
        read(record(largest - HEADER));
        assertThat(channel.isActive()).isTrue();
        pass(TimeUnit.HOURS.toSeconds(1));
        read(record(largest - HEADER + 5));
        assertThat(channel.isActive()).isFalse();
    }

    @Test
    void whatBringsNoDataIsChargedUntilDataComes() {
        records.handshaken();
        read(record(3_000));
        assertThat(held()).isZero();
        read(record(1_000));
        read(record(1_000));
        assertThat(held()).isEqualTo(5_000 + 3 * HEADER);
        read(data(1));
        assertThat(held()).isZero();
    }
}
