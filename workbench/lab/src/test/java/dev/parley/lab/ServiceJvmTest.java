package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.Limits.Share;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ServiceJvmTest {
    @ParameterizedTest
    @CsvSource({"8589934592, -Xms32m, -Xmx1024m", "536870912, -Xms32m, -Xmx256m", "33554432, -Xms16m, -Xmx16m"})
    void theHeapIsHalfOfALimitOnMemoryAndNoMoreThanWithoutOne(long limitBytes, String begin, String most) {
        assertThat(ServiceJvm.flags(new Share(Optional.empty(), Optional.of(limitBytes))))
                .contains(begin, most);
    }

    @Test
    void coresAloneDoNotChangeTheHeap() {
        assertThat(ServiceJvm.flags(new Share(Optional.of(0.5), Optional.empty())))
                .isEqualTo(ServiceJvm.FLAGS)
                .contains("-Xmx1024m");
    }
}
