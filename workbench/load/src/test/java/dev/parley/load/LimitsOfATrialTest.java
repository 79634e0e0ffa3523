package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.Load;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** When a trial is level, how full its clients were, and why it is void: each limit from both sides. */
class LimitsOfATrialTest {
    private static final Outcomes.Counts NONE = Outcomes.Counts.NONE;

    private static VoidReasons reasons(String load, Outcomes.Counts counts, long replied, double little) {
        return new VoidReasons(Load.parse(load), counts, replied, 0, 0, 0, 0, little);
    }

    private static boolean isStable(double... means) {
        Stability stability = new Stability();
        for (double mean : means) {
            stability.interval(mean);
        }
        return stability.isStable();
    }

    @Test
    void aWarmUpIsLevelWhenFourIntervalsLieWithinATenth() {
        assertThat(isStable()).isFalse();
        assertThat(isStable(100, 100, 100)).isFalse();
        assertThat(isStable(100, 110, 105, 100)).isTrue();
        assertThat(isStable(100, 110.1, 105, 100)).isFalse();
        assertThat(isStable(110.1, 100, 105, 100)).isFalse();
        // what came before the last four says nothing any more
        assertThat(isStable(5000, 100, 100, 100, 100)).isTrue();
        assertThat(isStable(100, 100, 100, 100, 5000)).isFalse();
        // half a second without a reply is not level
        assertThat(isStable(0, 0, 0, 0)).isFalse();
        assertThat(isStable(100, 0, 100, 100)).isFalse();
    }

    @Test
    void onlyWhatLiesInTheWindowFillsIt() {
        Occupancy occupancy = new Occupancy();
        occupancy.busy(0, 90);
        occupancy.there(0, 90);
        assertThat(occupancy.share()).as("before the window began").isNaN();
        occupancy.begin(100);
        // a second begin is none
        occupancy.begin(150);
        occupancy.end(200);
        occupancy.there(50, 250);
        occupancy.busy(80, 120);
        occupancy.busy(180, 260);
        occupancy.busy(210, 240);
        occupancy.busy(20, 60);
        // 20 and 20 of 100
        assertThat(occupancy.share()).isEqualTo(0.4);
    }

    @Test
    void aWindowWithoutAnEndGoesOn() {
        Occupancy occupancy = new Occupancy();
        occupancy.begin(100);
        occupancy.there(100, 500);
        occupancy.busy(100, 300);
        assertThat(occupancy.share()).isEqualTo(0.5);
    }

    @ParameterizedTest
    @CsvSource({"1.0499, 0", "1.0501, 1", "0.9501, 0", "0.9499, 1", "1, 0"})
    void littlesLawMayBeOffByFivePercent(double little, int reasons) {
        assertThat(reasons("open:100:even", NONE, 100, little).all()).hasSize(reasons);
    }

    @Test
    void littlesLawSaysWhatItIsHeldAgainst() {
        for (String closed : List.of("closed:4", "staircase:2-10:+2:60ms", "held:2-10:300ms:2")) {
            assertThat(reasons(closed, NONE, 100, 0.5).all())
                    .containsExactly("Little's law is off: rate × mean time is 0.50 of the clients (0.95 to 1.05)");
        }
        assertThat(reasons("open:100:even", NONE, 100, 0.5).all())
                .containsExactly(
                        "Little's law is off: rate × mean time is 0.50 of the requests in the system (0.95 to 1.05)");
    }

    @Test
    void oneOfAThousandMayStayUnsent() {
        assertThat(reasons("closed:4", new Outcomes.Counts(9, 0, 90, 1), 900, 1).all())
                .isEmpty();
        assertThat(reasons("closed:4", new Outcomes.Counts(9, 0, 90, 1), 899, 1).all())
                .containsExactly("0.10 % of requests could not be sent (at most 0.1 %)");
        assertThat(reasons("closed:4", new Outcomes.Counts(0, 0, 0, 2), 6, 1).all())
                .containsExactly("25.00 % of requests could not be sent (at most 0.1 %)");
        assertThat(reasons("closed:4", NONE, 0, 1).all()).containsExactly("no request was due");
    }

    @Test
    void wrongRepliesAndEndsToldTwiceAreNeverPassedOver() {
        assertThat(new VoidReasons(Load.parse("closed:4"), NONE, 10, 2, 3, 0, 0, 1).all())
                .containsExactly("2 wrong replies", "3 requests ended twice");
    }

    @ParameterizedTest
    @CsvSource({
        "open:100:even, 1000000, 0",
        "open:100:even, 1000001, 1",
        // a tenth of the 0.5 ms between two
        "open:2000:even, 50000, 0",
        "open:2000:even, 50001, 1",
        "ramp:100-2000:200ms:even, 50001, 1",
        "users:2000:50ms:3, 50001, 1",
        "burst:50:4, 900000000, 0",
        "closed:4, 1000000, 0",
        "closed:4, 1000001, 1",
        "highest:50-3200:p99:50ms:200ms, 1000000, 0",
        "highest:50-3200:p99:50ms:200ms, 1000001, 1"
    })
    void latenessMayBeATenthOfTheInterval(String load, long latenessNs, int reasons) {
        assertThat(new VoidReasons(Load.parse(load), NONE, 100, 0, 0, 0, latenessNs, 1).all())
                .hasSize(reasons);
    }

    @Test
    void latenessAndUseAreToldInWords() {
        assertThat(new VoidReasons(Load.parse("open:2000:even"), NONE, 100, 0, 0, 0.8, 1_500_000, 1).all())
                .containsExactly("requests were sent late, p99 1.50 ms (at most 0.05 ms)");
        assertThat(new VoidReasons(Load.parse("closed:4"), NONE, 100, 0, 0, 0.81, 0, 1).all())
                .containsExactly("the load generator used 81 % of a core (at most 80 %)");
    }

    /** A search by a service that answers rightly up to a rate, and nothing above it. */
    private static double found(String load, double capacity) {
        Script script = new Script(Load.parse(load), 0, 1_000_000_000, 0);
        Stretch part = script.next(null);
        int tries = 0;
        while (part != null && tries++ < 100) {
            part.outcomes.due(100);
            int inTime = part.from <= capacity ? 99 : 98;
            part.responses.recordValueWithCount(10_000_000, inTime);
            part.responses.recordValueWithCount(900_000_000, 100 - inTime);
            part = script.next(part);
        }
        assertThat(tries).isLessThan(100);
        return script.highestMet();
    }

    @ParameterizedTest
    @ValueSource(doubles = {50, 60, 77, 400, 1000, 3000})
    void aSearchEndsWithinFivePercentOfWhatTheServiceCanDo(double capacity) {
        assertThat(found("highest:50-3200:p99:50ms:200ms", capacity)).isBetween(capacity / 1.06, capacity);
    }

    @Test
    void aSearchStaysWithinItsEnds() {
        assertThat(found("highest:50-3200:p99:50ms:200ms", 1e6)).isEqualTo(3200);
        assertThat(found("highest:50-3200:p99:50ms:200ms", 49)).isZero();
    }

    @Test
    void oneMissIsTriedAgain() {
        Script script = new Script(Load.parse("highest:50-3200:p99:50ms:200ms"), 0, 1_000_000_000, 0);
        Stretch first = script.next(null);
        assertThat(first.from).isEqualTo(50);
        assertThat(first.label).isEqualTo("try 1: 50 per second");
        Stretch again = script.next(first);
        assertThat(first.isCounted).as("nothing was due in it").isFalse();
        assertThat(again.from).isEqualTo(50);
        again.outcomes.due(1);
        again.responses.recordValue(50_000_000);
        Stretch next = script.next(again);
        assertThat(again.isCounted).isTrue();
        assertThat(next.from).isEqualTo(100);
        next.outcomes.due(1);
        assertThat(script.next(next).from).as("due and not answered").isEqualTo(100);
    }
}
