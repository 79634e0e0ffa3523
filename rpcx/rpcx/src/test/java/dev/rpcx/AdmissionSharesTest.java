package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.ledger.AddressGroups;
import dev.rpcx.internal.server.AdmissionLimit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests how many calls of one method a group of peers may run if another group has used up the method's limit. */
class AdmissionSharesTest {
    private static final int LIMIT = 12;

    private final AtomicInteger all = new AtomicInteger();
    private final AdmissionLimit limit = new AdmissionLimit(1_000, all, 0);
    private final AdmissionLimit.Group full = limit.group(0);
    private final AdmissionLimit.Group other = limit.group(7);
    private final AdmissionLimit.Group third = limit.group(15);

    /** Sets the limit as if calls had been late. These tests do not look at what the limit has learnt. */
    @BeforeEach
    void sink() throws ReflectiveOperationException {
        var field = AdmissionLimit.class.getDeclaredField("limit");
        field.setAccessible(true);
        field.setInt(limit, LIMIT);
        // each of these calls is of another connection
        assertThat(entering(full)).isEqualTo(LIMIT);
    }

    /** @return how many calls are admitted one after the other, each of another connection */
    private static int entering(AdmissionLimit.Group group) {
        int entered = 0;
        while (entered < 100 && group.admit()) {
            entered++;
        }
        return entered;
    }

    @Test
    void aGroupHasItsPartThoughOthersHaveAll() {
        assertThat(entering(other)).isEqualTo(LIMIT / 2);
        assertThat(entering(third)).isEqualTo(LIMIT / 3);
        assertThat(entering(full)).isZero();
        assertThat(limit.running()).isEqualTo(LIMIT + LIMIT / 2 + LIMIT / 3).isEqualTo(all.get());
    }

    @Test
    void eachOf16GroupsThatComesAfterTheOthersHasAsManyAsThereAreThen() {
        int running = LIMIT;
        for (int i = 1; i < AddressGroups.COUNT; i++) {
            int entered = entering(limit.group(i));
            assertThat(entered).as("group %s", i).isEqualTo(LIMIT / (i + 1));
            // a group whose part is 0 runs nothing, so the others get no smaller parts because of it
            running += entered;
        }
        assertThat(limit.running()).isEqualTo(running).isLessThan((int) (3.4 * LIMIT));
    }

    @Test
    void groupsThatRunNothingAnyMoreLeaveTheirPartToOthers() {
        assertThat(other.admit()).isTrue();
        assertThat(third.admit()).isTrue();
        other.release();
        assertThat(entering(third)).isEqualTo(LIMIT / 2 - 1);
        assertThat(third.admit()).isFalse();
        third.release(0, 10, 5, true);
        assertThat(third.admit()).isTrue();
        third.leaveUnbegun(0, 10, 5);
        assertThat(third.admit()).isTrue();
        assertThat(third.admit()).isFalse();
    }

    @Test
    void groupsThatEndWithAResultOrUnbegunShareNoMore() {
        assertThat(other.admit()).isTrue();
        other.release(0, 10, 5, true);
        assertThat(other.admit()).isTrue();
        other.leaveUnbegun(0, 10, 5);
        assertThat(entering(third)).isEqualTo(LIMIT / 2);
    }

    @Test
    void oneConnectionHasAllOfItsGroupsPartWhereItIsAlone() {
        for (int i = 0; i < LIMIT / 2; i++) {
            assertThat(other.admit(i, i)).as("call %s", i).isTrue();
        }
        assertThat(other.admit(LIMIT / 2, LIMIT / 2)).isFalse();
    }

    @Test
    void oneThatRunsMoreThanIsLeftOfItsGroupsPartLeavesThatToTheOthers() {
        for (int i = 0; i < 4; i++) {
            assertThat(other.admit(i, i)).isTrue();
        }
        assertThat(other.admit()).as("another connection").isTrue();
        assertThat(other.admit(4, 4))
                .as("the one with four, where one more is left")
                .isFalse();
        assertThat(other.admit(1, 1)).as("the other one").isTrue();
        assertThat(other.admit()).as("none is left").isFalse();
    }

    /**
     * The groups of an address change when other addresses come or go. What a connection runs by then counts in its
     * former group.
     */
    @Test
    void aConnectionThatHasComeToAnotherGroupBeginsThere() {
        assertThat(other.admit(20, 20)).isTrue();
        assertThat(other.admit(21, 21)).isTrue();
    }

    @Test
    void aGroupAloneHasTheLimitAndNoMore() {
        assertThat(full.admit()).isFalse();
        full.release();
        assertThat(full.admit()).isTrue();
        assertThat(full.admit()).isFalse();
    }
}
