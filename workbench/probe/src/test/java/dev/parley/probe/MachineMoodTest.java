package dev.parley.probe;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class MachineMoodTest {
    private static final MachineMood BEFORE = MachineMood.parse("cpu 100 0 100 800 0 0 0 0\n", "pswpin 5\npswpout 7\n");

    @Test
    void aQuietMachineHasNoComplaints() {
        MachineMood after = MachineMood.parse("cpu 150 0 150 900 0 0 0 2\n", "pswpin 5\npswpout 7\n");
        assertThat(after.complaintsSince(BEFORE)).isEmpty();
        assertThat(after.busyShareSince(BEFORE)).isBetween(0.5, 0.51);
    }

    @Test
    void stolenTimeAndSwapAreNamed() {
        MachineMood after = MachineMood.parse("cpu 150 0 150 800 0 0 0 10\n", "pswpin 6\npswpout 7\n");
        assertThat(after.complaintsSince(BEFORE))
                .containsExactly("9.1 % of processor time stolen by the host (at most 2 %)", "1 pages swapped");
    }
}
