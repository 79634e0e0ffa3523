package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.model.Load;
import dev.parley.model.MessageSpec;
import dev.parley.model.Topology;
import dev.parley.model.TrialSpec;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

class RehearsalTest {
    private static final MessageSpec TEXT = MessageSpec.parse("text:1000");
    private static final MessageSpec TYPES = MessageSpec.parse("types:100");

    /** Plays back slices under load, the last for ever. Time is that of what was played. */
    private static final class Played implements Rehearsal.Stage {
        private final Deque<Slice> slices = new ArrayDeque<>();
        private final List<String> loads = new ArrayList<>();
        private long nowNs = 17;

        Played(Slice... all) {
            slices.addAll(Arrays.asList(all));
        }

        @Override
        public Slice play(MessageSpec message, Load load, Duration length) {
            loads.add(message + " " + load + " " + length.toMillis());
            nowNs += length.toNanos();
            return slices.size() > 1 ? slices.poll() : slices.peek();
        }

        @Override
        public long nowNs() {
            return nowNs;
        }
    }

    private static Slice slice(double percent, double medianMs) {
        return new Slice(OptionalDouble.of(percent), OptionalDouble.of(10), medianMs, 500);
    }

    private static Slice mute() {
        return new Slice(OptionalDouble.of(0), OptionalDouble.of(0), 0, 0);
    }

    private static TrialSpec trial(MessageSpec message, Load load) {
        return new TrialSpec(
                0,
                "rest",
                Topology.parse("line:2"),
                "messages",
                message,
                load,
                1,
                1,
                new TrialSpec.Window(Duration.ZERO, Duration.ZERO, Duration.ofSeconds(2)),
                Duration.ofSeconds(1));
    }

    @Test
    void itEndsWhenThriceInARowCompilersTakeATenthAndLatencyFallsNoMore() throws InterruptedException {
        Played played = new Played(
                slice(70, 9),
                slice(40, 5),
                slice(8, 4),
                slice(9, 3.9),
                slice(11, 3.9),
                slice(9, 3.8),
                slice(8, 3.8),
                slice(8, 3.9),
                slice(2, 1));
        new Rehearsal(played, Duration.ZERO, Duration.ofMinutes(5), 0).of(List.of(TEXT));
        // 8 % came with a median that had fallen by a fifth, 9 % only once, 11 % is over a tenth.
        assertThat(played.loads).hasSize(8).containsOnly("text:1000 closed:16 500");
    }

    /** By a twentieth from each to the next, and by a seventh over three of them. */
    @Test
    void latencyThatFallsByLittleAgainAndAgainIsNotLevel() throws InterruptedException {
        Played played = new Played(
                slice(50, 10),
                slice(1, 9.5),
                slice(1, 9.1),
                slice(1, 8.6),
                slice(1, 8.5),
                slice(1, 8.5),
                slice(1, 8.5));
        new Rehearsal(played, Duration.ZERO, Duration.ofMinutes(5), 0).of(List.of(TEXT));
        assertThat(played.loads).hasSize(7);
    }

    /** REST over two services had three quiet slices in a row after 25 s, and fell by a third until 32 s. */
    @Test
    void whatTookLongHasToBeQuietForLong() throws InterruptedException {
        List<Slice> slices = new ArrayList<>(Collections.nCopies(20, slice(60, 5)));
        slices.add(slice(2, 5));
        Played played = new Played(slices.toArray(Slice[]::new));
        new Rehearsal(played, Duration.ZERO, Duration.ofMinutes(5), 0).of(List.of(TEXT));
        assertThat(played.loads)
                .as("20 that are not quiet, and a quarter of all that is")
                .hasSize(27);
    }

    @Test
    void whatTookLongHasToBeLevelForLong() throws InterruptedException {
        List<Slice> slices = new ArrayList<>(Collections.nCopies(24, slice(60, 5)));
        slices.addAll(Collections.nCopies(3, slice(2, 5)));
        slices.add(slice(2, 4.4));
        Played played = new Played(slices.toArray(Slice[]::new));
        new Rehearsal(played, Duration.ZERO, Duration.ofMinutes(5), 0).of(List.of(TEXT));
        // Of eight slices the first four and the last four are held against each other: 5, 5, 5, 4.4 and four of 4.4.
        assertThat(played.loads).hasSize(32);
    }

    /** It compiled for three seconds after it had counted bytes, and took a seventh of the services' rate. */
    @Test
    void aGeneratorThatCompilesIsNotQuiet() throws InterruptedException {
        Slice compiles = new Slice(OptionalDouble.of(3), OptionalDouble.of(10.1), 5, 500);
        Played played = new Played(compiles, compiles, compiles, compiles, slice(3, 5));
        new Rehearsal(played, Duration.ZERO, Duration.ofMinutes(5), 0).of(List.of(TEXT));
        assertThat(played.loads).hasSize(7);
    }

    /** What services reached is the lowest of the last quarter, of all that was played under the trial's load. */
    @Test
    void whatWasReachedIsTheLowestOfTheLastQuarter() throws InterruptedException {
        List<Slice> slices = new ArrayList<>(List.of(slice(60, 1)));
        slices.addAll(Collections.nCopies(12, slice(60, 5)));
        slices.add(slice(2, 4.8));
        slices.add(slice(2, 5.2));
        slices.add(slice(2, 5));
        Played played = new Played(slices.toArray(Slice[]::new));
        Rehearsal rehearsal = new Rehearsal(played, Duration.ZERO, Duration.ofMinutes(5), 1);
        assertThat(rehearsal.reachedMs(trial(TEXT, new Load.Closed(16)))).isEmpty();
        rehearsal.of(List.of(TEXT));
        assertThat(rehearsal.reachedMs(trial(TEXT, new Load.Closed(16)))).hasValue(4.8);
        assertThat(rehearsal.reachedMs(trial(TEXT, Load.parse("burst:100:10")))).hasValue(4.8);
        assertThat(rehearsal.reachedMs(trial(TEXT, new Load.Closed(1)))).isEmpty();
    }

    @Test
    void aSliceWithoutAReplyAmongTheLastIsNotLevel() throws InterruptedException {
        List<Slice> slices = new ArrayList<>(Collections.nCopies(20, slice(3, 5)));
        slices.set(18, mute());
        Played played = new Played(slices.toArray(Slice[]::new));
        new Rehearsal(played, Duration.ofMillis(9_600), Duration.ofMinutes(5), 0).of(List.of(TEXT));
        assertThat(played.loads)
                .as("it is not among the last quarter, of seven, from 26 on")
                .hasSize(26);
    }

    /** Services that were warm for a message a minute ago are so as a rule, and show it in one slice. */
    @Test
    void whatWasSeenWarmInTheSameBootIsLookedAtOnce() throws InterruptedException {
        Played played = new Played(
                slice(3, 1),
                slice(3, 1),
                slice(3, 1),
                slice(4, 1),
                slice(40, 1),
                slice(4, 1),
                slice(70, 1),
                slice(3, 1));
        Rehearsal rehearsal = new Rehearsal(played, Duration.ZERO, Duration.ofMinutes(5), 4);
        rehearsal.of(List.of(TEXT));
        played.loads.clear();
        assertThat(rehearsal.before(trial(TEXT, Load.parse("burst:100:10")))).isTrue();
        assertThat(played.loads).containsExactly("text:1000 closed:16 500");
        played.loads.clear();
        assertThat(rehearsal.before(trial(TEXT, new Load.Closed(16)))).isTrue();
        assertThat(played.loads)
                .as("a slice in which compilers took 40 % is one that showed otherwise")
                .containsExactly("text:1000 closed:16 500", "text:1000 closed:16 500");
        played.loads.clear();
        assertThat(rehearsal.before(trial(TYPES, new Load.Closed(16)))).isTrue();
        assertThat(played.loads)
                .filteredOn(l -> l.startsWith("types:100 closed:16"))
                .as("never seen")
                .hasSize(4);
    }

    @Test
    void twoQuietSlicesMayBeAnAccident() throws InterruptedException {
        Played played = new Played(slice(3, 1), slice(3, 1), slice(60, 1), slice(2, 1));
        Rehearsal rehearsal = new Rehearsal(played, Duration.ZERO, Duration.ofMinutes(5), 1);
        assertThat(rehearsal.before(trial(TEXT, new Load.Closed(16)))).isTrue();
        assertThat(played.loads).filteredOn(l -> l.contains("closed:16")).hasSize(6);
    }

    @Test
    void aSliceWithoutAReplyIsNeverQuiet() throws InterruptedException {
        Played mute = new Played(mute());
        Rehearsal rehearsal = new Rehearsal(mute, Duration.ZERO, Duration.ofSeconds(20), 1);
        assertThat(rehearsal.before(trial(TEXT, new Load.Closed(16)))).isFalse();
        assertThat(Duration.ofNanos(mute.nowNs - 17)).isEqualTo(Duration.ofSeconds(20));
    }

    /**
     * A scale that gives six tenths of a second plays what shows whether services are warm, once for each message and
     * load.
     */
    @Test
    void whatTheCriterionNeedsIsPlayedHoweverLittleTimeThereIs() throws InterruptedException {
        Played played = new Played(slice(50, 5));
        Rehearsal rehearsal = new Rehearsal(played, Duration.ZERO, Duration.ofMillis(600), 4);
        rehearsal.of(List.of(TEXT, TYPES));
        assertThat(played.loads.stream().distinct()).contains("text:1000 closed:16 200", "types:100 closed:16 200");
        for (MessageSpec message : List.of(TEXT, TYPES)) {
            played.loads.clear();
            rehearsal.before(trial(message, new Load.Closed(1)));
            assertThat(played.loads).containsExactly(message + " closed:1 200", message + " closed:1 200");
            played.loads.clear();
            rehearsal.before(trial(message, Load.parse("burst:100:10")));
            assertThat(played.loads).as("played already, and no time is left").isEmpty();
        }
        assertThat(rehearsal.spent()).isEqualTo(Duration.ofNanos(played.nowNs - 17));
    }

    @Test
    void twoSlicesCanShowThatServicesAreWarmHoweverLittleTimeThereIs() throws InterruptedException {
        Played warm = new Played(slice(4, 5));
        Rehearsal rehearsal = new Rehearsal(warm, Duration.ZERO, Duration.ofMillis(1), 1);
        assertThat(rehearsal.before(trial(TEXT, new Load.Closed(1)))).isTrue();
        assertThat(warm.loads).hasSize(2);
    }

    /** A slice of half a second would hold one request, or none, at a request a second. */
    @Test
    void anOpenLoadOfFewRequestsIsRehearsedByOneClient() throws InterruptedException {
        Played warm = new Played(slice(3, 1));
        Rehearsal rehearsal = new Rehearsal(warm, Duration.ZERO, Duration.ofSeconds(20), 3);
        assertThat(rehearsal.before(trial(TEXT, new Load.Open(0.333, Load.Arrivals.EVEN))))
                .isTrue();
        assertThat(warm.loads).hasSize(3).containsOnly("text:1000 closed:1 500");
    }

    @Test
    void theSlowTakeLongerThanTheFast() throws InterruptedException {
        Played fast = new Played(slice(30, 1), slice(2, 1));
        Played slow = new Played(slice(60, 9), slice(50, 8), slice(30, 8), slice(20, 8), slice(9, 8));
        new Rehearsal(fast, Duration.ZERO, Duration.ofMinutes(5), 4).of(List.of(TEXT));
        new Rehearsal(slow, Duration.ZERO, Duration.ofMinutes(5), 4).of(List.of(TEXT));
        assertThat(fast.nowNs).isLessThan(slow.nowNs);
    }

    @Test
    void itIsOverWithItsTimeAndSaysThatItIsNotWarm() throws InterruptedException {
        Played never = new Played(slice(50, 5));
        Rehearsal rehearsal = new Rehearsal(never, Duration.ZERO, Duration.ofSeconds(20), 4);
        rehearsal.of(List.of(TEXT, TYPES));
        for (Load load : List.of(new Load.Closed(1), new Load.Closed(16))) {
            assertThat(rehearsal.before(trial(TEXT, load))).isFalse();
            assertThat(rehearsal.before(trial(TYPES, load))).isFalse();
        }
        assertThat(Duration.ofNanos(never.nowNs - 17)).isLessThanOrEqualTo(Duration.ofSeconds(20));
        assertThat(never.loads)
                .filteredOn(l -> l.startsWith("types:100 closed:16"))
                .isNotEmpty();
        assertThat(never.loads).filteredOn(l -> l.contains("closed:1 ")).isNotEmpty();
    }

    @Test
    void aTrialIsRehearsedAtItsOwnConcurrency() throws InterruptedException {
        Played warm = new Played(slice(3, 1));
        Rehearsal rehearsal = new Rehearsal(warm, Duration.ZERO, Duration.ofSeconds(20), 3);
        assertThat(rehearsal.before(trial(TEXT, new Load.Closed(1)))).isTrue();
        assertThat(rehearsal.before(trial(TEXT, new Load.Open(30, Load.Arrivals.EVEN))))
                .isTrue();
        assertThat(rehearsal.before(trial(TEXT, new Load.Burst(5, 2)))).isTrue();
        assertThat(warm.loads)
                .containsExactly(
                        "text:1000 closed:1 500",
                        "text:1000 closed:1 500",
                        "text:1000 closed:1 500",
                        "text:1000 open:30:even 500",
                        "text:1000 open:30:even 500",
                        "text:1000 open:30:even 500",
                        "text:1000 closed:16 500",
                        "text:1000 closed:16 500",
                        "text:1000 closed:16 500");
    }

    @Test
    void whereNobodyTellsWhatCompilersTakeItLastsAsLongAsItMay() throws InterruptedException {
        Played silent = new Played(new Slice(OptionalDouble.empty(), OptionalDouble.empty(), 1, 500));
        Rehearsal rehearsal = new Rehearsal(silent, Duration.ZERO, Duration.ofSeconds(7), 0);
        rehearsal.of(List.of(TEXT));
        assertThat(silent.loads).hasSize(20).containsOnly("text:1000 closed:16 350");
    }

    @Test
    void itLastsItsLeastHoweverWarmTheServicesAre() throws InterruptedException {
        Played warm = new Played(slice(1, 1));
        Duration least = Duration.ofSeconds(10);
        new Rehearsal(warm, least, least, 4).of(List.of(TEXT, TYPES));
        assertThat(warm.loads).hasSize(20);
        assertThat(warm.loads).filteredOn(l -> l.startsWith("types")).hasSize(10);
    }

    @Test
    void servicesThatUseNoProcessorTimeAreWarm() throws InterruptedException {
        Played idle = new Played(new Slice(OptionalDouble.of(0), OptionalDouble.of(0), 1, 2));
        assertThat(new Rehearsal(idle, Duration.ZERO, Duration.ofSeconds(7), 1).before(trial(TEXT, new Load.Closed(1))))
                .isTrue();
    }

    @Test
    void nothingIsRehearsedWhereThereIsNoTimeForIt() throws InterruptedException {
        Played played = new Played(slice(50, 5));
        Rehearsal rehearsal = new Rehearsal(played, Duration.ZERO, Duration.ZERO, 1);
        rehearsal.of(List.of(TEXT));
        assertThat(rehearsal.before(trial(TEXT, new Load.Closed(1)))).isFalse();
        assertThat(played.loads).isEmpty();
    }

    private static List<String> ofMessage(Played played, MessageSpec message) {
        return played.loads.stream()
                .filter(l -> l.startsWith(message + " closed"))
                .toList();
    }

    /** Half of all for the first message, and three parts of what is left for each other beside one for each cell. */
    @Test
    void theFirstMessageHasHalfOfTheTimeAndTheOthersTheirParts() throws InterruptedException {
        MessageSpec more = MessageSpec.parse("types:1000");
        Played never = new Played(slice(50, 5));
        Rehearsal rehearsal = new Rehearsal(never, Duration.ZERO, Duration.ofSeconds(20), 4);
        rehearsal.of(List.of(TEXT, TYPES, more));
        // slices take half a second: 10 s of 20, then 10 × 3 / 10 and 7 × 3 / 7
        assertThat(ofMessage(never, TEXT)).hasSize(20);
        assertThat(ofMessage(never, TYPES)).hasSize(6);
        assertThat(ofMessage(never, more)).hasSize(6);
        assertThat(rehearsal.spent()).isEqualTo(Duration.ofSeconds(16));
        // a quarter of 4 s is for two slices, and three are played in any case; then a third of 2.5 s, and a half of 1
        // s
        for (MessageSpec message : List.of(TEXT, TYPES)) {
            never.loads.clear();
            rehearsal.before(trial(message, new Load.Closed(1)));
            assertThat(never.loads).hasSize(3).containsOnly(message + " closed:1 500");
        }
        assertThat(rehearsal.spent()).isEqualTo(Duration.ofSeconds(19));
        // then all that is left
        for (int i = 0; i < 2; i++) {
            never.loads.clear();
            rehearsal.before(trial(TEXT, new Load.Closed(1)));
            assertThat(never.loads).containsExactly("text:1000 closed:1 500");
        }
        assertThat(rehearsal.spent()).isEqualTo(Duration.ofSeconds(20));
        never.loads.clear();
        rehearsal.before(trial(TEXT, new Load.Closed(1)));
        assertThat(never.loads).as("no time is left").isEmpty();
    }

    @Test
    void aMessageAloneHasAllButThreeSlicesForEachCell() throws InterruptedException {
        Played never = new Played(slice(50, 5));
        new Rehearsal(never, Duration.ZERO, Duration.ofSeconds(20), 2).of(List.of(TEXT));
        assertThat(never.loads).hasSize(34);
        Played crowded = new Played(slice(50, 5));
        new Rehearsal(crowded, Duration.ZERO, Duration.ofSeconds(20), 30).of(List.of(TEXT));
        assertThat(crowded.loads).as("and a half at the least").hasSize(20);
    }

    @Test
    void whereNoCellFollowsTheLastMessageHasAllThatIsLeft() throws InterruptedException {
        Played never = new Played(slice(50, 5));
        new Rehearsal(never, Duration.ZERO, Duration.ofSeconds(20), 0).of(List.of(TEXT, TYPES));
        assertThat(ofMessage(never, TEXT)).hasSize(20);
        assertThat(ofMessage(never, TYPES)).hasSize(20);
    }

    @Test
    void eachMessageHasItsLeastAlsoWhereThatIsMoreThanItsPart() throws InterruptedException {
        Played warm = new Played(slice(1, 1));
        Rehearsal rehearsal = new Rehearsal(warm, Duration.ofSeconds(9), Duration.ofSeconds(12), 9);
        rehearsal.of(List.of(TEXT, TYPES, MessageSpec.parse("types:1000")));
        // three seconds each, though the second has but 9 × 3 / 15 by its part
        assertThat(warm.loads).hasSize(18);
        assertThat(ofMessage(warm, TYPES)).hasSize(6);
        assertThat(rehearsal.before(trial(TEXT, new Load.Closed(16))))
                .as("a trial has no least of its own, and less than half a second left")
                .isFalse();
        assertThat(rehearsal.spent()).isEqualTo(Duration.ofSeconds(9));
    }

    @Test
    void noMessageIsNothingToRehearse() throws InterruptedException {
        Played played = new Played(slice(1, 1));
        Rehearsal rehearsal = new Rehearsal(played, Duration.ofSeconds(9), Duration.ofSeconds(12), 9);
        rehearsal.of(List.of());
        assertThat(rehearsal.spent()).isZero();
    }

    @Test
    void compilersMayTakeATenthAndNoMore() {
        assertThat(slice(10, 1).isQuiet()).isTrue();
        assertThat(slice(10.01, 1).isQuiet()).isFalse();
        assertThat(new Slice(OptionalDouble.empty(), OptionalDouble.of(0), 1, 500).isQuiet())
                .isFalse();
        assertThat(new Slice(OptionalDouble.of(1), OptionalDouble.of(1), 1, 0).isQuiet())
                .isFalse();
        assertThat(new Slice(OptionalDouble.of(1), OptionalDouble.of(1), 1, 0.5).isQuiet())
                .isTrue();
    }

    /** A slice without a reply has no median: the next is held against the one before it. */
    @Test
    void aSliceWithoutAReplySaysNothingOfTheMedian() throws InterruptedException {
        Slice mute = new Slice(OptionalDouble.of(1), OptionalDouble.of(1), 900, 0);
        Played played = new Played(slice(1, 9), mute, slice(1, 8.9), slice(1, 8.9), slice(1, 8.9), slice(1, 2));
        Rehearsal rehearsal = new Rehearsal(played, Duration.ZERO, Duration.ofMinutes(5), 1);
        assertThat(rehearsal.before(trial(TEXT, new Load.Closed(16)))).isTrue();
        assertThat(played.loads).hasSize(5);
    }

    @Test
    void aLoadOfTwentyRequestsASecondIsRehearsedAsItIs() {
        assertThat(Rehearsal.standIn(new Load.Open(20, Load.Arrivals.EVEN)))
                .isEqualTo(new Load.Open(20, Load.Arrivals.EVEN));
        assertThat(Rehearsal.standIn(new Load.Open(19.9, Load.Arrivals.EVEN))).isEqualTo(new Load.Closed(1));
        assertThat(Rehearsal.standIn(new Load.Closed(3))).isEqualTo(new Load.Closed(3));
        Load.forms().stream()
                .flatMap(form -> form.examples().stream())
                .flatMap(example -> Load.parseAll(example).stream())
                .filter(load -> !load.isSteady())
                .forEach(load ->
                        assertThat(Rehearsal.standIn(load)).as(load.toString()).isEqualTo(new Load.Closed(16)));
    }
}
