package dev.parley.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.parley.model.Load;
import dev.parley.model.Load.Arrivals;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What each load consists of, and for how long. */
class ScriptTest {
    private static final long WINDOW_NS = 5_000_000_000L;

    private static Script script(String load) {
        return new Script(Load.parse(load), WINDOW_NS, 1_000_000_000, 7_000);
    }

    private static List<Stretch> parts(String load) {
        Script script = script(load);
        List<Stretch> parts = new ArrayList<>();
        for (Stretch part = script.next(null); part != null && parts.size() < 50; part = script.next(part)) {
            parts.add(part);
        }
        return parts;
    }

    @ParameterizedTest
    @CsvSource({
        "closed:4, 4 clients, 4, 4, 5000, 5000",
        "open:100:even, 100 per second, 100, 100, 5000, 5000",
        "open:0.5:even, 0.5 per second, 0.5, 0.5, 5000, 5000",
        "open:0.0001:even, 0.0001 per second, 0.0001, 0.0001, 5000, 5000",
        "ramp:100-900:200ms:even, ramp, 100, 900, 200, 200",
        "held:2-10:300ms:2, held, 2, 10, 300, 300",
        "users:400:50ms:3, users, 400, 400, 0, 50"
    })
    void aLoadOfOnePartIsOverAfterIt(
            String load, String label, double from, double to, long lengthMs, long scheduleMs) {
        List<Stretch> parts = parts(load);
        assertThat(parts).hasSize(1);
        Stretch part = parts.getFirst();
        assertThat(part.label).isEqualTo(label);
        assertThat(part.from).isEqualTo(from);
        assertThat(part.to).isEqualTo(to);
        assertThat(part.lengthNs).isEqualTo(lengthMs * 1_000_000);
        assertThat(part.scheduleNs).isEqualTo(scheduleMs * 1_000_000);
        assertThat(part.patienceNs).isEqualTo(load.startsWith("users") ? 7_000 : 0);
    }

    @Test
    void aStaircaseHasAPartAStep() {
        List<Stretch> parts = parts("staircase:2-10:+4:60ms");
        assertThat(parts).extracting(part -> part.label).containsExactly("2 clients", "6 clients", "10 clients");
        assertThat(parts).extracting(part -> part.from).containsExactly(2.0, 6.0, 10.0);
        assertThat(parts).allMatch(part -> part.lengthNs == 60_000_000 && part.isCounted);
    }

    @Test
    void aBurstHasAPartAnIteration() {
        List<Stretch> parts = parts("burst:50:3");
        assertThat(parts).extracting(part -> part.label).containsExactly("iteration 1", "iteration 2", "iteration 3");
        assertThat(parts).allMatch(part -> part.from == 50 && part.patienceNs == 7_000 && part.isCounted);
    }

    @Test
    void theFirstOfTheRoundsDoesNotCountAndACutRoundIsTheLast() {
        List<Stretch> parts = parts("rounds:4x40:3:10s:shared");
        assertThat(parts).extracting(part -> part.label).containsExactly("round 0", "round 1", "round 2");
        assertThat(parts).extracting(part -> part.isCounted).containsExactly(false, true, true);
        assertThat(parts).allMatch(part -> part.from == 4 && part.patienceNs == 10_000_000_000L);
        Script script = script("rounds:4x40:3:10s:shared");
        Stretch cut = script.next(null);
        cut.isCut = true;
        assertThat(script.next(cut)).isNull();
    }

    @ParameterizedTest
    @CsvSource({
        "closed:4, 5000",
        "staircase:2-10:+4:60ms, 180",
        "ramp:100-900:200ms:even, 200",
        "burst:50:3, -1",
        "rounds:4x40:3:10s:shared, -1",
        "users:400:50ms:3, -1",
        "highest:50-3200:p99:50ms:200ms, -1"
    })
    void theLengthOfALoadThatItsWorkDecidesIsLongerThanAny(String load, long lengthMs) {
        assertThat(script(load).lengthNs()).isEqualTo(lengthMs < 0 ? Long.MAX_VALUE : lengthMs * 1_000_000);
    }

    /** A rate is met or not, twice if need be. */
    private static Stretch tried(Script script, Stretch part, boolean isMet) {
        Stretch next = part;
        for (int i = 0; i < (isMet ? 1 : 2); i++) {
            next.outcomes.due(1);
            next.responses.recordValue(isMet ? 1 : 900_000_000);
            next = script.next(next);
        }
        return next;
    }

    @Test
    void aSearchDoublesUntilTheLimitIsNotMetAndThenHalvesWhatIsBetween() {
        Script script = script("highest:100-1000:p99:50ms:200ms");
        Stretch part = script.next(null);
        assertThat(part.from).isEqualTo(100);
        assertThat(part.lengthNs).isEqualTo(200_000_000);
        assertThat(part.scheduleNs).isEqualTo(200_000_000);
        part = tried(script, part, true);
        assertThat(part.from).isEqualTo(200);
        part = tried(script, part, false);
        // √(100 · 200), to a tenth
        assertThat(part.from).isEqualTo(141.4);
        assertThat(part.to).isEqualTo(141.4);
        part = tried(script, part, true);
        assertThat(part.from).isEqualTo(168.2);
        part = tried(script, part, false);
        assertThat(part.from).isEqualTo(154.2);
        part = tried(script, part, false);
        assertThat(part.from).isEqualTo(147.7);
        // 147.7 / 141.4 is under 1.05
        assertThat(tried(script, part, false)).isNull();
        assertThat(script.highestMet()).isEqualTo(141.4);
    }

    @Test
    void aSearchNeverGoesBeyondItsEnds() {
        Script up = script("highest:100-150:p99:50ms:200ms");
        Stretch part = tried(up, up.next(null), true);
        assertThat(part.from).isEqualTo(150);
        assertThat(tried(up, part, true)).isNull();
        assertThat(up.highestMet()).isEqualTo(150);
        Script down = script("highest:100-150:p99:50ms:200ms");
        assertThat(tried(down, down.next(null), false)).isNull();
        assertThat(down.highestMet()).isZero();
    }

    @Test
    void aSearchEndsWhereThereIsNoTenthLeftBetween() {
        Script script = script("highest:1-1.1:p99:50ms:200ms");
        Stretch part = tried(script, script.next(null), true);
        assertThat(part.from).isEqualTo(1.1);
        assertThat(tried(script, part, false)).isNull();
        assertThat(script.highestMet()).isEqualTo(1);
    }

    @Test
    void trialsAndPartsHaveSeedsOfTheirOwn() {
        assertThat(IntStream.range(0, 100)
                        .mapToLong(number -> Schedule.derived(7, number))
                        .distinct())
                .hasSize(100);
        assertThat(IntStream.range(0, 100)
                        .mapToLong(seed -> Schedule.derived(seed, 3))
                        .distinct())
                .hasSize(100);
        assertThat(Schedule.derived(7, 3)).isEqualTo(Schedule.derived(7, 3)).isNotZero();
        // each bit of a seed may show in each bit of what is derived from it: half of them differ between neighbours
        double differing = IntStream.range(0, 1000)
                .mapToLong(seed -> Long.bitCount(Schedule.derived(seed, 1) ^ Schedule.derived(seed + 1, 1)))
                .average()
                .orElseThrow();
        assertThat(differing).isCloseTo(32, within(1.0));
    }

    @Test
    void blocksOfArrivalsStandOneBehindTheOther() {
        // 100 000 a second for a second: 391 blocks of 256
        Schedule schedule = new Schedule(100_000, 100_000, 1_000_000_000, Arrivals.POISSON, 5);
        long[] inTenth = new long[10];
        long last = 0;
        long index = 0;
        for (; schedule.offsetNs(index) != Schedule.NEVER; index++) {
            long offset = schedule.offsetNs(index);
            assertThat(offset).isGreaterThanOrEqualTo(last);
            last = offset;
            inTenth[(int) (offset / 100_000_000)]++;
        }
        // a hundred a tenth is one standard deviation
        for (long arrivals : inTenth) {
            assertThat((double) arrivals).isCloseTo(10_000, within(500.0));
        }
        assertThat(schedule.offsetNs(index + 1_000)).isEqualTo(Schedule.NEVER);
        assertThat(schedule.offsetNs(0)).isLessThan(100_000);
    }
}
