package dev.rpcx.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GrpcTimeoutTest {
    @Test
    void eachUnitIsRead() {
        assertThat(GrpcTimeout.micros("2H")).isEqualTo(7_200_000_000L);
        assertThat(GrpcTimeout.micros("3M")).isEqualTo(180_000_000L);
        assertThat(GrpcTimeout.micros("4S")).isEqualTo(4_000_000L);
        assertThat(GrpcTimeout.micros("250m")).isEqualTo(250_000L);
        assertThat(GrpcTimeout.micros("7u")).isEqualTo(7L);
        assertThat(GrpcTimeout.micros("99999999n")).isEqualTo(99_999L);
        assertThat(GrpcTimeout.micros("999n")).isZero();
        assertThat(GrpcTimeout.micros("99999999H")).isEqualTo(99_999_999L * 3_600_000_000L);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "S", "1", "123456789S", "-1S", "+1S", "1.5S", "1s", "1 S", "１S"})
    void whatIsNoTimeIsMalformed(String text) {
        assertThat(GrpcTimeout.micros(text)).isEqualTo(GrpcTimeout.MALFORMED);
    }
}
