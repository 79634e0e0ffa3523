package dev.parley.model;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class QuantityTest {
    @ParameterizedTest
    @ValueSource(longs = {512_000_000, 1L << 30, 32_001_000, 12_345_678_901L})
    void bytesAreReadAsTheyWereWritten(long bytes) {
        assertThat(Quantity.bytes(Quantity.textOfBytes(bytes))).isEqualTo(bytes);
    }

    @ParameterizedTest
    @ValueSource(longs = {8_000, 1_000_000, 12_345_678, 12_345_678_901L})
    void aBandwidthIsReadAsItWasWritten(long bits) {
        assertThat(Quantity.bitsPerSecond(Quantity.textOfBits(bits))).isEqualTo(bits);
    }
}
