package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class HeapArrayTest {
    private static final int MIB = 1 << 20;

    @ParameterizedTest
    @CsvSource({
        "0, 0",
        "65536, 65536",
        "95301, 95325",
        "349501, 349525",
        "349502, 524288",
        "524264, 524288",
        "524265, 1048576",
        "524288, 1048576",
        "1048552, 1048576",
        "1048553, 2097152",
        "4194304, 5242880"
    })
    void anArrayTakesItsPartOfARegionOrWholeRegions(long bytes, long taken) {
        assertThat(HeapArray.heapBytes(bytes, MIB)).isEqualTo(taken);
    }

    @Test
    void whatIsTakenNeverShrinksAsAnArrayGrows() {
        long before = 0;
        for (int bytes = 60_000; bytes < 3 * MIB; bytes += 7) {
            long taken = HeapArray.heapBytes(bytes, MIB);
            assertThat(taken).isGreaterThanOrEqualTo(before).isBetween((long) bytes, 2L * (bytes + 24));
            before = taken;
        }
    }

    @Test
    void whereTheHeapHasNoRegionsAnArrayTakesItsBytes() {
        assertThat(HeapArray.heapBytes(4 * MIB, 0)).isEqualTo(4 * MIB);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 300, 5_000, 200_000, 300_000, 524_288, 1_000_000, 4 * MIB, 4 * MIB + 1, 30 * MIB})
    void growthIsWhatTheBufferTakesAfterwards(int bytes) {
        ByteBuf buffer = Unpooled.buffer(256);
        buffer.writeInt(1);
        long before = HeapArray.heapBytes(buffer);
        long growth = HeapArray.growth(buffer, bytes);
        HeapArray.grow(buffer, bytes);
        assertThat(buffer.writableBytes()).isGreaterThanOrEqualTo(bytes);
        assertThat(HeapArray.heapBytes(buffer)).isEqualTo(before + growth);
        assertThat(HeapArray.growth(buffer, bytes)).isZero();
        int capacity = buffer.capacity();
        HeapArray.grow(buffer, bytes);
        assertThat(buffer.capacity()).isEqualTo(capacity);
    }

    /**
     * A request of 300 kB is read into a buffer of nearly 512 KiB. Such an array has to fit half a region of 1 MiB,
     * together with its header.
     */
    @ParameterizedTest
    @CsvSource({
        "32768, 32768",
        "32769, 65512",
        "200000, 262120",
        "300000, 524264",
        "524264, 524264",
        "524265, 1048552",
        "2000000, 2097128"
    })
    void largeBuffersFitRegionsWithTheirHeaders(int bytes, int capacity) {
        ByteBuf buffer = Unpooled.buffer(256);
        HeapArray.grow(buffer, bytes);
        assertThat(buffer.capacity()).isEqualTo(capacity);
    }

    @Test
    void aBufferGrowsToItsMostAndNoFurther() {
        ByteBuf buffer = Unpooled.buffer(256, 600_000);
        HeapArray.grow(buffer, 590_000);
        assertThat(buffer.capacity()).isEqualTo(600_000);
    }
}
