package dev.parley.model;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class NearestTest {
    private static final List<String> KNOWN = List.of("rest", "grpc", "rpcx", "rest-spring", "success-within", "get");

    @ParameterizedTest
    @CsvSource({
        "grcp, grpc",
        "GRPC, grpc",
        "rst, rest",
        "rests, rest",
        "rast, rest",
        "rest-sprin, rest-spring",
        "spring-rest, ''",
        "success_within, success-within",
        "gat, get",
        "gt, get",
        "gt1, ''",
        "soap, ''",
        "'', ''"
    })
    void aNameIsNearWithinAThirdOfTheLongerOne(String given, String nearest) {
        assertThat(Nearest.of(given, KNOWN).orElse("")).isEqualTo(nearest);
    }

    @Test
    void theFirstOfEquallyNearNamesIsMeant() {
        assertThat(Nearest.of("tesc", List.of("test", "tesa"))).contains("test");
        assertThat(Nearest.of("tesc", List.of("tesa", "test"))).contains("tesa");
        assertThat(Nearest.of("test", List.of("tesa", "test"))).contains("test");
        assertThat(Nearest.of("test", List.of())).isEmpty();
    }

    @Test
    void aMistakeNamesTheNearestBeforeWhatWasExpected() {
        assertThat(BadInput.oneOf("technology", "grcp", List.of("rest", "grpc")))
                .hasMessage("technology: grcp (did you mean grpc? expected: one of rest, grpc)");
        assertThat(BadInput.oneOf("technology", "soap", List.of("rest", "grpc")))
                .hasMessage("technology: soap (expected: one of rest, grpc)");
        assertThat(BadInput.near("metric", "bot_time", List.of("boot_time"), "a metric"))
                .hasMessage("metric: bot_time (did you mean boot_time? expected: a metric)");
    }
}
