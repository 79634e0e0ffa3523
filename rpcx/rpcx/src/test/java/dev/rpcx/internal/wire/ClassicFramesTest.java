package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.WireFault;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests frames of the classic wire that arrive cut anywhere, and the bytes that are held of them. */
class ClassicFramesTest {
    private static final int MAX = 2000;
    private static final int MAX_PASSED = 5000;

    private final List<byte[]> whole = new ArrayList<>();
    private final List<byte[]> begins = new ArrayList<>();
    private final List<Integer> passed = new ArrayList<>();
    private final List<Integer> held = new ArrayList<>();

    /** Number of bytes that are held for the frame that is arriving. */
    private int holding;

    /** Number of bytes that may be held. */
    private int room = Integer.MAX_VALUE;

    private final ClassicFrames frames = new ClassicFrames(MAX, MAX_PASSED, new ClassicFrames.Reader() {
        @Override
        public boolean reserve(long bytes) {
            if (bytes > room) {
                return false;
            }
            room -= (int) bytes;
            holding += (int) bytes;
            held.add((int) bytes);
            return true;
        }

        @Override
        public void frame(byte[] frame, int bytes) {
            whole.add(Arrays.copyOf(frame, bytes));
            holding = 0;
        }

        @Override
        public void onSkip() {
            room += holding;
            holding = 0;
        }

        @Override
        public void onSkipped(byte[] begin, int bytes, int length) {
            begins.add(Arrays.copyOf(begin, bytes));
            passed.add(length);
        }
    });

    /** Returns this many bytes, each with a value of its own. */
    private static byte[] bytes(int count) {
        byte[] bytes = new byte[count];
        for (int i = 0; i < count; i++) {
            bytes[i] = (byte) (i + 1);
        }
        return bytes;
    }

    private static ByteBuf frame(int count) {
        return Unpooled.buffer().writeInt(count).writeBytes(bytes(count));
    }

    private void read(ByteBuf in, int at, long nowNanos) {
        frames.read(in.readSlice(at), nowNanos);
    }

    private void readWhole(ByteBuf in) {
        frames.read(in, 0);
        assertThat(in.isReadable()).as("all of it is read").isFalse();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4, 5, 7, 64, 255, 256, 257, 1000})
    void aFrameIsTheSameWhereverItIsCut(int step) {
        ByteBuf in = Unpooled.buffer();
        int[] lengths = {1, 0, 300, 255, 256, 257, 2000, 64};
        for (int length : lengths) {
            in.writeBytes(frame(length));
        }
        while (in.isReadable()) {
            readWhole(in.readSlice(Math.min(step, in.readableBytes())));
        }
        assertThat(whole).hasSize(lengths.length);
        for (int i = 0; i < lengths.length; i++) {
            assertThat(whole.get(i)).isEqualTo(bytes(lengths[i]));
        }
        assertThat(frames.isIncomplete()).isFalse();
    }

    /** A client skips a reply of any length. So the alert is recognized by its bytes, and only before any frame. */
    @Test
    void anAlertInPlaceOfTheFirstFrameSaysThatThePeerUsesTls() {
        ByteBuf alert = Unpooled.buffer().writeInt(0x1503_0300);
        assertThatThrownBy(() -> readWhole(alert.duplicate()))
                .isInstanceOf(WireFault.class)
                .hasMessage("the peer uses TLS, and this side does not (expected: TLS on both sides, or on neither)");
        frames.clear();
        readWhole(frame(1));
        assertThatThrownBy(() -> readWhole(alert.duplicate()))
                .isInstanceOf(WireFault.class)
                .hasMessageStartingWith("classic frame of 352518912 bytes");
    }

    @Test
    void aFrameThatHasBegunIsCutUntilItsLastByte() {
        ByteBuf in = frame(10);
        assertThat(frames.isIncomplete()).isFalse();
        read(in, 1, 17);
        assertThat(frames.isIncomplete()).isTrue();
        assertThat(frames.length()).as("not known before its last byte").isZero();
        read(in, 2, 18);
        assertThat(frames.length()).isZero();
        read(in, 1, 19);
        assertThat(frames.length()).isEqualTo(10);
        read(in, 9, 20);
        assertThat(frames.beganNanos()).isEqualTo(17);
        assertThat(frames.isIncomplete()).isTrue();
        read(in, 1, 21);
        assertThat(frames.isIncomplete()).isFalse();
        assertThat(frames.length()).isZero();
        read(frame(10), 4, 22);
        assertThat(frames.beganNanos()).isEqualTo(22);
    }

    @Test
    void aFrameHasBegunByTwoClocksOneOfWhichGoesOnInAPause() {
        read(frame(10), 6, 17);
        frames.postpone(100);
        assertThat(frames.beganNanos()).isEqualTo(117);
        assertThat(frames.firstBeganNanos()).isEqualTo(17);
        frames.postponeFirst(1_000);
        assertThat(frames.beganNanos()).isEqualTo(117);
        assertThat(frames.firstBeganNanos()).isEqualTo(1_017);
        frames.clear();
        read(frame(10), 4, 2_000);
        assertThat(frames.firstBeganNanos()).isEqualTo(2_000);
    }

    @Test
    void noMoreIsHeldThanTwiceWhatHasArrived() {
        ByteBuf in = frame(1000);
        read(in, 4, 0);
        assertThat(held).as("a length costs nothing").isEmpty();
        read(in, 1, 0);
        assertThat(held).containsExactly(256);
        read(in, 255, 0);
        assertThat(held).containsExactly(256);
        read(in, 1, 0);
        assertThat(held).containsExactly(256, 256);
        read(in, 300, 0);
        assertThat(held).as("never more than the whole").containsExactly(256, 256, 488);
        read(in, 443, 0);
        assertThat(held).containsExactly(256, 256, 488);
        assertThat(whole).hasSize(1);
    }

    @Test
    void whatArrivesAtOnceIsHeldAtOnce() {
        readWhole(frame(1999));
        readWhole(frame(10));
        assertThat(held).containsExactly(1999, 10);
    }

    @Test
    void aFrameThatIsTooLongIsPassedOverAndItsBeginIsKept() {
        readWhole(frame(MAX));
        readWhole(frame(MAX + 1).writeBytes(frame(3)));
        assertThat(whole).containsExactly(bytes(MAX), bytes(3));
        assertThat(passed).containsExactly(MAX + 1);
        assertThat(begins).containsExactly(bytes(64));
        assertThat(held).as("nothing of it").containsExactly(MAX, 3);
    }

    @Test
    void theBeginOfAFrameThatIsPassedOverIsTheSameWhereverItIsCut() {
        for (int step : new int[] {1, 63, 64, 65, 1000}) {
            ByteBuf in = frame(MAX_PASSED);
            while (in.isReadable()) {
                readWhole(in.readSlice(Math.min(step, in.readableBytes())));
            }
        }
        assertThat(begins).hasSize(5).allSatisfy(begin -> assertThat(begin).isEqualTo(bytes(64)));
        assertThat(passed).containsOnly(MAX_PASSED);
    }

    @Test
    void aFrameThatMayNotBeHeldIsPassedOverFromThereOn() {
        room = 256;
        ByteBuf in = frame(1000);
        read(in, 4 + 200, 0);
        read(in, 100, 0);
        assertThat(frames.isIncomplete()).isTrue();
        room = Integer.MAX_VALUE;
        readWhole(in.writeBytes(frame(5)));
        assertThat(begins).containsExactly(bytes(64));
        assertThat(passed).containsExactly(1000);
        assertThat(whole).as("the next one is not").containsExactly(bytes(5));
    }

    @Test
    void whatWasHeldIsGivenBackWhenTheRestBeginsToPass() {
        room = 600;
        ByteBuf in = frame(1000);
        read(in, 4 + 200, 0);
        assertThat(holding).isEqualTo(256);
        read(in, 500, 0);
        assertThat(frames.isIncomplete()).isTrue();
        assertThat(holding).isZero();
        assertThat(room).isEqualTo(600);
        readWhole(in);
        assertThat(passed).containsExactly(1000);
    }

    @Test
    void aShortFrameThatMayNotBeHeldKeepsWhatItHas() {
        room = 0;
        readWhole(frame(10));
        assertThat(begins).containsExactly(bytes(10));
        assertThat(passed).containsExactly(10);
    }

    @Test
    void aLengthThatIsNoneIsAFault() {
        assertThatThrownBy(() -> frames.read(Unpooled.buffer().writeInt(MAX_PASSED + 1), 0))
                .isInstanceOf(WireFault.class)
                .hasMessageContaining((MAX_PASSED + 1) + " bytes (expected: 0 to " + MAX_PASSED + ")");
        frames.clear();
        assertThatThrownBy(() -> frames.read(Unpooled.buffer().writeInt(-1), 0))
                .isInstanceOf(WireFault.class)
                .hasMessageContaining("-1 bytes (expected: 0 to ");
    }

    @Test
    void whatIsForgottenHasNotBegun() {
        read(frame(2001), 70, 0);
        frames.clear();
        assertThat(frames.isIncomplete()).isFalse();
        readWhole(frame(7));
        assertThat(whole).containsExactly(bytes(7));
        assertThat(passed).isEmpty();
    }
}
