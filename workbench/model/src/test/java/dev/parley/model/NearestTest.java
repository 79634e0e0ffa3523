package dev.parley.model;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class NearestTest {
    private static final List<String> KNOWN = List.of("closed", "staircase", "open", "users");

    @ParameterizedTest
    @CsvSource({
        "closd, closed",
        "cloosed, closed",
        "clased, closed",
        "stairs-case, staircase",
        "user, users",
        "open, open"
    })
    void aSlipOfThePenIsFound(String given, String meant) {
        assertThat(Nearest.of(given, KNOWN)).contains(meant);
    }

    @Test
    void whatIsMoreThanAThirdAwayIsNoSlip() {
        assertThat(Nearest.of("stair", KNOWN)).isEmpty();
        assertThat(Nearest.of("trickle", KNOWN)).isEmpty();
        assertThat(Nearest.of("", KNOWN)).isEmpty();
        assertThat(Nearest.of("closed", List.of())).isEmpty();
    }

    @Test
    void ofTwoTheNearerIsMeant() {
        assertThat(Nearest.of("messages", List.of("massage", "message"))).contains("message");
    }
}
