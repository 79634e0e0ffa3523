package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.testing.Faults;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Predicate;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what a simulated bad network does to the frames of one direction, without a pipeline and without a socket. */
class FaultyFramesTest {
    private static final String PREFACE = "5250435801000000";
    private static final String PING = frame(Wire.PING, 7, "");
    private static final String A = frame(Wire.REQUEST, 1, "aa");
    private static final String B = frame(Wire.REQUEST, 2, "bbbb");
    private static final String C = frame(Wire.REQUEST, 3, "cc");
    private static final String D = frame(Wire.REQUEST, 4, "dd");
    private static final String END = "end";

    /** Returns a frame in hexadecimal digits. */
    static String frame(int type, int call, String payload) {
        return String.format("%02x%02x%08x", Wire.HEAD_BYTES + payload.length() / 2, type, call) + payload;
    }

    private static int add(FaultyFrames frames, String... hex) {
        return frames.add(Unpooled.wrappedBuffer(ByteBufUtil.decodeHexDump(String.join("", hex))));
    }

    private static List<FaultyFrames.Due> dues(FaultyFrames frames) {
        List<FaultyFrames.Due> dues = new ArrayList<>();
        for (FaultyFrames.Due due = frames.poll(); due != null; due = frames.poll()) {
            dues.add(due);
        }
        return dues;
    }

    private static String hex(FaultyFrames.Due due) {
        ByteBuf frame = due.frame();
        return frame == null ? END : ByteBufUtil.hexDump(frame);
    }

    private static List<String> passed(FaultyFrames frames) {
        return dues(frames).stream().map(FaultyFramesTest::hex).toList();
    }

    /** Returns which of these frames are passed on after the preface. */
    private static List<String> passed(Faults faults, String... hex) {
        FaultyFrames frames = new FaultyFrames(faults, 0, true);
        add(frames, PREFACE);
        add(frames, hex);
        List<String> passed = passed(frames);
        assertThat(passed).startsWith(PREFACE);
        return passed.subList(1, passed.size());
    }

    /** Returns these faults with the first seed that gives such fates to the first two frames of the client. */
    private static Faults where(Faults shares, Predicate<Faults.Fate> first, Predicate<Faults.Fate> second) {
        return LongStream.range(0, 10_000)
                .mapToObj(seed -> new Faults(
                        seed,
                        shares.delay(),
                        shares.delayedBy(),
                        shares.loss(),
                        shares.duplicate(),
                        shares.reorder(),
                        shares.cut()))
                .filter(faults -> {
                    Random random = faults.random(0, true);
                    return first.test(faults.fate(random)) && second.test(faults.fate(random));
                })
                .findFirst()
                .orElseThrow();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 7, 1000})
    void framesAreTheSameHoweverTheyArrive(int bytesAtOnce) {
        String large = "8040" + "06" + "00000005" + "ee".repeat(8192 - Wire.HEAD_BYTES);
        byte[] arriving = ByteBufUtil.decodeHexDump(PREFACE + A + PING + large + B);
        FaultyFrames frames = new FaultyFrames(Faults.seeded(1), 0, true);
        for (int at = 0; at < arriving.length; at += bytesAtOnce) {
            frames.add(Unpooled.wrappedBuffer(arriving, at, Math.min(bytesAtOnce, arriving.length - at)));
        }
        assertThat(passed(frames)).containsExactly(PREFACE, A, PING, large, B);
        assertThat(frames.peek()).isNull();
    }

    @Test
    void eachFaultIsThatOfItsName() {
        Faults none = Faults.seeded(1);
        assertThat(passed(none, A, PING, B)).containsExactly(A, PING, B);
        assertThat(passed(none.losing(1), A, PING, B)).containsExactly(PING);
        assertThat(passed(none.duplicating(1), A, PING, B)).containsExactly(A, A, PING, B, B);
        assertThat(passed(none.reordering(1), A, PING, B, C, D)).containsExactly(PING, B, A, D, C);
        assertThat(passed(none.cutting(1), PING, A, PING, B)).containsExactly(PING, END);
    }

    @Test
    void aFrameThatIsLostIsNeitherDoubledNorLate() {
        assertThat(passed(new Faults(1, 0, Duration.ZERO, 1, 1, 1, 0), A, B)).isEmpty();
    }

    @Test
    void aLateFrameArrivesOnceAndAlsoBehindOneThatIsLost() {
        Faults lateThenLost = where(
                Faults.seeded(0).reordering(0.5).losing(0.5).duplicating(0.5),
                fate -> fate.isLate() && fate.isDoubled() && !fate.isLost(),
                Faults.Fate::isLost);
        assertThat(passed(lateThenLost, A, B)).containsExactly(A);
    }

    @Test
    void whatIsLateWhenTheConnectionIsCutDoesNotArrive() {
        Faults lateThenCut = where(
                Faults.seeded(0).reordering(0.5).cutting(0.5),
                fate -> fate.isLate() && !fate.isCut(),
                Faults.Fate::isCut);
        assertThat(passed(lateThenCut, A, B, PING, C)).containsExactly(END);
    }

    @Test
    void whatComesBehindADelayedFrameWaitsAsLong() {
        Faults faults = where(
                Faults.seeded(0).delaying(0.5, Duration.ofSeconds(1)),
                fate -> !fate.isDelayed(),
                Faults.Fate::isDelayed);
        FaultyFrames frames = new FaultyFrames(faults, 0, true);
        long before = System.nanoTime();
        add(frames, PREFACE, A, B, PING);
        List<FaultyFrames.Due> dues = dues(frames);
        assertThat(dues).extracting(FaultyFramesTest::hex).containsExactly(PREFACE, A, B, PING);
        assertThat(dues.get(1).atNanos() - before).isLessThanOrEqualTo(0);
        assertThat(dues.get(2).atNanos() - before)
                .isGreaterThanOrEqualTo(Duration.ofSeconds(1).toNanos());
        assertThat(dues.get(3).atNanos()).isEqualTo(dues.get(2).atNanos());
    }

    @Test
    void delaysAddUp() {
        FaultyFrames frames = new FaultyFrames(Faults.seeded(1).delaying(1, Duration.ofMinutes(1)), 0, true);
        add(frames, PREFACE, A, B);
        List<FaultyFrames.Due> dues = dues(frames);
        assertThat(dues.get(2).atNanos() - dues.get(1).atNanos())
                .isEqualTo(Duration.ofMinutes(1).toNanos());
    }

    @Test
    void aCutWaitsForWhatWasDelayedBeforeIt() {
        Faults delayedThenCut = where(
                Faults.seeded(0).delaying(0.5, Duration.ofSeconds(1)).cutting(0.5),
                fate -> fate.isDelayed() && !fate.isCut(),
                fate -> fate.isCut() && !fate.isDelayed());
        FaultyFrames frames = new FaultyFrames(delayedThenCut, 0, true);
        add(frames, PREFACE, A, B);
        List<FaultyFrames.Due> dues = dues(frames);
        assertThat(dues).extracting(FaultyFramesTest::hex).containsExactly(PREFACE, A, END);
        assertThat(dues.get(2).atNanos()).isEqualTo(dues.get(1).atNanos());
    }

    @Test
    void faultsAreCountedAndFramesOfNoCallMeetNone() {
        FaultyFrames frames = new FaultyFrames(new Faults(1, 1, Duration.ZERO, 1, 1, 1, 0), 0, true);
        assertThat(add(frames, PREFACE, PING)).isZero();
        assertThat(add(frames, A, PING, B)).isEqualTo(8);
        FaultyFrames cut = new FaultyFrames(Faults.seeded(1).cutting(1), 0, true);
        assertThat(add(cut, PREFACE, A, B)).isEqualTo(1);
        assertThat(add(cut, C)).isZero();
    }

    @ParameterizedTest
    @ValueSource(strings = {"04ffffffff", "818001", "ffffff01", "8500", "00"})
    void whatIsNoFrameEndsTheConnection(String bytes) {
        assertThat(passed(Faults.seeded(1), A, bytes, B)).containsExactly(A, END);
    }

    @Test
    void bothDirectionsOfEachConnectionHaveFaultsOfTheirOwn() {
        Faults faults = Faults.seeded(5).losing(0.5);
        String[] sent = new String[64];
        for (int i = 0; i < sent.length; i++) {
            sent[i] = frame(Wire.REQUEST, i + 1, "");
        }
        List<List<String>> all = new ArrayList<>();
        for (int connection = 0; connection < 2; connection++) {
            for (boolean up : new boolean[] {true, false}) {
                FaultyFrames frames = new FaultyFrames(faults, connection, up);
                add(frames, PREFACE);
                add(frames, sent);
                List<String> passed = passed(frames);
                Random random = faults.random(connection, up);
                List<String> expected = new ArrayList<>(List.of(PREFACE));
                for (String frame : sent) {
                    if (!faults.fate(random).isLost()) {
                        expected.add(frame);
                    }
                }
                assertThat(passed).isEqualTo(expected);
                all.add(passed);
            }
        }
        assertThat(all).doesNotHaveDuplicates();
    }
}
