package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which calls are due soon, against a table of all calls. */
class DueSoonTest {
    private static final long MS = TimeUnit.MILLISECONDS.toNanos(1);

    /** Holds the time at which each call is due. */
    private final Map<Integer, Long> due = new HashMap<>();

    private long now = Long.MAX_VALUE - 3 * DueSoon.SPAN_NANOS;
    private int asked;
    private int ended;
    private final DueSoon soon = new DueSoon(this::left, () -> now);

    private long left(int id, long at) {
        asked++;
        Long when = due.get(id);
        return when == null ? DueSoon.NEVER : when - at;
    }

    private long end(int id, long at) {
        asked++;
        Long when = due.get(id);
        if (when == null) {
            return DueSoon.NEVER;
        }
        if (when - at > 0) {
            return when - at;
        }
        due.remove(id);
        ended++;
        return DueSoon.NEVER;
    }

    /** Looks as a connection does, and returns the time from now to the next look. */
    private long look() {
        if (soon.isComplete(now)) {
            return soon.scan(now, this::end);
        }
        soon.begin(now);
        long next = DueSoon.NEVER;
        for (int id : due.keySet().toArray(Integer[]::new)) {
            long left = end(id, now);
            if (left < DueSoon.NEVER) {
                next = Math.min(next, left);
                soon.add(id, now + left);
            }
        }
        return next;
    }

    private void add(int id, long leftNanos) {
        due.put(id, now + leftNanos);
        soon.add(id, now + leftNanos);
    }

    @Test
    void oneThatIsDueAgainAndAgainHasNoOtherPassedForIt() {
        for (int id = 0; id < 4_096; id++) {
            add(id, TimeUnit.HOURS.toNanos(1));
        }
        look();
        asked = 0;
        int looks = 0;
        for (long end = now + 10 * DueSoon.SPAN_NANOS; now - end < 0; looks++) {
            add(10_000 + looks, 5 * MS);
            now += 5 * MS;
            assertThat(look()).isGreaterThan(5 * MS);
        }
        assertThat(ended).isEqualTo(looks);
        // a look asks all calls once a second, and each call that is due once
        assertThat(asked).isBetween(2_000, 11 * 4_100 + 2_000);
    }

    /** Many calls come that are due soon. The table of all calls is passed once for many of them, and not for each. */
    @ParameterizedTest
    @ValueSource(ints = {65, 130, 1_000})
    void whoHasManyDueSoonHasAllPassedOnceForManyOfThem(int many) {
        for (int id = 0; id < 4_096; id++) {
            add(id, TimeUnit.HOURS.toNanos(1));
        }
        look();
        asked = 0;
        int added = 0;
        for (int round = 0; round < 200; round++) {
            for (int i = 0; i < many; i++) {
                add(10_000 + added++, 5 * MS);
            }
            now += 5 * MS;
            look();
        }
        assertThat(ended).isEqualTo(added);
        assertThat(asked / added).as("passed for one that is due").isLessThan(100);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
    void allAreEndedWhenTheyAreDueAndTheNextIsKnown(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        int most = random.nextInt(20, 2_000);
        long longest = random.nextLong(MS, 4 * DueSoon.SPAN_NANOS);
        int id = 0;
        look();
        for (int step = 0; step < 3_000; step++) {
            for (int i = random.nextInt(1 + most / 50); i > 0 && due.size() < most; i--) {
                add(id++, random.nextLong(1, longest));
            }
            if (random.nextInt(3) == 0) {
                // some call ends by itself, or becomes due later or earlier than was said
                due.keySet().stream().findFirst().ifPresent(one -> {
                    if (random.nextBoolean()) {
                        due.remove(one);
                    } else if (random.nextBoolean()) {
                        due.merge(one, random.nextLong(longest), Long::sum);
                    } else {
                        add(one, 1 + Math.max(0, due.get(one) - now) / 2);
                    }
                });
            }
            now += random.nextLong(longest / 20);
            long next = look();
            assertThat(due.values()).as("at step " + step).allMatch(when -> when - now > 0);
            long first =
                    due.values().stream().mapToLong(when -> when - now).min().orElse(DueSoon.NEVER);
            assertThat(next).as("at step " + step).isLessThanOrEqualTo(first).isPositive();
        }
        assertThat(ended).isPositive();
    }

    /** Looks at all calls, and then adds as many as there is room for, the first ones due a millisecond apart. */
    private void fill(int soonest) {
        look();
        for (int i = 0; i < DueSoon.MAX_CALLS; i++) {
            add(i, i < soonest ? (1 + i) * MS : DueSoon.SPAN_NANOS / 2 + (1 + i) * MS);
        }
    }

    @Test
    void whereOneMoreComesTheTimeIsHalvedAndNoMoreIsLookedAtThan() {
        fill(DueSoon.MAX_CALLS / 2);
        assertThat(soon.isComplete(now + DueSoon.SPAN_NANOS - 1)).isTrue();
        add(1_000, DueSoon.SPAN_NANOS / 2 - MS);
        assertThat(soon.isComplete(now + DueSoon.SPAN_NANOS / 2 - 1)).isTrue();
        assertThat(soon.isComplete(now + DueSoon.SPAN_NANOS / 2)).isFalse();
        assertThat(soon.scan(now, this::end)).isEqualTo(MS);
        now += DueSoon.SPAN_NANOS / 2 - 1;
        asked = 0;
        // the next look is due with the first of the calls that are not kept
        assertThat(soon.scan(now, this::end)).isEqualTo((2 + DueSoon.MAX_CALLS / 2 - 1) * MS + 1);
        assertThat(asked).isEqualTo(DueSoon.MAX_CALLS / 2 + 1);
        assertThat(ended).isEqualTo(DueSoon.MAX_CALLS / 2 + 1);
    }

    @Test
    void whereHalfOfTheTimeDoesNotDoItIsHalvedAgain() {
        fill(DueSoon.MAX_CALLS / 2 + 1);
        add(1_000, DueSoon.SPAN_NANOS / 4);
        assertThat(soon.isComplete(now)).isTrue();
        // 65 calls are due within 65 ms, and those within a sixteenth of a second are kept
        assertThat(soon.isComplete(now + DueSoon.SPAN_NANOS / 16 - 1)).isTrue();
        assertThat(soon.isComplete(now + DueSoon.SPAN_NANOS / 16)).isFalse();
        assertThat(soon.scan(now, this::end)).isEqualTo(MS);
        now += DueSoon.SPAN_NANOS / 16 - 1;
        assertThat(soon.scan(now, this::end)).isEqualTo(MS / 2 + 1);
        assertThat(ended).isEqualTo(62);
    }

    @Test
    void whereTooManyAreDueAtOnceAllAreLookedAt() {
        look();
        for (int i = 0; i <= DueSoon.MAX_CALLS; i++) {
            add(i, 1);
        }
        assertThat(soon.scan(now, this::end)).isEqualTo(1);
        now++;
        assertThat(soon.isComplete(now)).isFalse();
        look();
        assertThat(ended).isEqualTo(DueSoon.MAX_CALLS + 1);
    }

    /** A call that a look ends may bring other calls, while the look goes through those that are kept. */
    @Test
    void oneThatComesWithinALookAndFindsNoRoomHasAllLookedAtNextTime() {
        fill(DueSoon.MAX_CALLS / 2);
        now += MS;
        long next = soon.scan(now, (id, at) -> {
            long left = end(id, at);
            if (left == DueSoon.NEVER) {
                add(1_000, 3 * MS);
                add(1_001, 2 * MS);
            }
            return left;
        });
        assertThat(ended).isEqualTo(1);
        assertThat(next).isEqualTo(MS);
        assertThat(soon.isComplete(now)).isFalse();
        now += 3 * MS;
        look();
        assertThat(due).doesNotContainKeys(1, 2, 3, 1_000, 1_001).containsKey(4);
        assertThat(soon.isComplete(now)).isTrue();
    }
}
