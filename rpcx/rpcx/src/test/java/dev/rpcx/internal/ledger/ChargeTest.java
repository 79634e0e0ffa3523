package dev.rpcx.internal.ledger;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests what a charge takes from its account and gives back, byte by byte and step by step. */
class ChargeTest {
    private static final int STEP = 4096;
    private static final long ALL = 16 * STEP;

    private final Ledger ledger = new Ledger(
            "ledger under test",
            Map.of(Resource.REQUEST_BYTES, ALL, Resource.HANDLERS, 8L),
            Map.of(),
            Integer.MAX_VALUE);

    private final Account account = Objects.requireNonNull(ledger.open(null));
    private final Charge bytes = account.charge(Resource.REQUEST_BYTES);

    private long taken() {
        return ledger.held(Resource.REQUEST_BYTES);
    }

    @Test
    void bytesAreTakenInStepsAndEachStepIsUsedUpFirst() {
        assertThat(bytes.add(1)).isTrue();
        assertThat(taken()).isEqualTo(STEP);
        assertThat(bytes.add(STEP - 1)).isTrue();
        assertThat(taken()).isEqualTo(STEP);
        assertThat(bytes.add(1)).isTrue();
        assertThat(taken()).isEqualTo(2 * STEP);
        assertThat(bytes.add(3 * STEP - 1)).isTrue();
        assertThat(taken()).isEqualTo(4 * STEP);
        assertThat(bytes.held()).isEqualTo(4 * STEP);
    }

    @Test
    void whatIsReleasedInPartGoesBackInWholeStepsAndOneStaysInHand() {
        bytes.add(6 * STEP);
        bytes.release(STEP);
        assertThat(taken()).isEqualTo(6 * STEP);
        bytes.release(STEP - 1);
        assertThat(taken()).isEqualTo(6 * STEP);
        bytes.release(1);
        assertThat(taken()).isEqualTo(4 * STEP);
        assertThat(bytes.held()).isEqualTo(4 * STEP);
        bytes.release(4 * STEP);
        assertThat(bytes.held()).isZero();
        assertThat(taken()).isZero();
    }

    @Test
    void moreThanIsHeldCannotBeReleasedAndAllOfItCan() {
        bytes.add(100);
        assertThatThrownBy(() -> bytes.release(101)).hasMessageContaining("at most 100");
        bytes.release(100);
        assertThat(bytes.held()).isZero();
    }

    @Test
    void aSizeThatIsSetIsHeldWhetherItGrowsOrShrinks() {
        assertThat(bytes.set(5 * STEP)).isTrue();
        assertThat(bytes.held()).isEqualTo(5 * STEP);
        assertThat(bytes.set(2 * STEP)).isTrue();
        assertThat(bytes.held()).isEqualTo(2 * STEP);
        assertThat(taken()).isEqualTo(2 * STEP);
        assertThat(bytes.set(2 * STEP)).isTrue();
        assertThat(bytes.held()).isEqualTo(2 * STEP);
        assertThat(bytes.set(3 * STEP)).isTrue();
        assertThat(taken()).isEqualTo(3 * STEP);
        assertThat(bytes.set(ALL)).isFalse();
        assertThat(bytes.held()).isEqualTo(3 * STEP);
        bytes.set(1);
        assertThat(bytes.set(0)).isTrue();
        assertThat(taken()).isZero();
    }

    @ParameterizedTest
    @EnumSource(
            value = Resource.class,
            names = {"KEPT_BYTES", "TABLE_BYTES", "FRAME_BYTES", "CALLS", "HANDLERS", "STREAMS", "TIMERS"})
    void whatIsNotCountedInBytesGoesBackAtOnce(Resource kind) {
        Charge one = account.charge(kind);
        one.add(3);
        assertThat(ledger.held(kind)).isEqualTo(3);
        one.release(1);
        assertThat(ledger.held(kind)).isEqualTo(2);
        assertThat(account.held(kind)).isEqualTo(2);
        one.release();
        assertThat(ledger.held(kind)).isZero();
    }

    @Test
    void whatIsHandedOverStaysTakenAndIsNobodyElsesToGiveBack() {
        Charge bytes = account.charge(Resource.OBJECT_BYTES);
        bytes.add(STEP + 1);
        assertThat(bytes.handOver()).isEqualTo(2 * STEP);
        assertThat(bytes.held()).isZero();
        bytes.release();
        assertThat(ledger.held(Resource.OBJECT_BYTES)).isEqualTo(2 * STEP);
        account.release(Resource.OBJECT_BYTES, 2 * STEP);
        Charge places = account.charge(Resource.CALLS);
        places.add(3);
        places.handOver(1);
        assertThat(places.held()).isEqualTo(2);
        places.release();
        assertThat(ledger.held(Resource.CALLS)).isEqualTo(1);
        assertThatThrownBy(() -> places.handOver(1)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> bytes.handOver(0)).isInstanceOf(IllegalArgumentException.class);
        account.release(Resource.CALLS, 1);
    }

    @Test
    void theLastOneThatFitsIsGivenAndNoMore() {
        Charge one = account.charge(Resource.HANDLERS);
        // the charge gets as much as is still free
        assertThat(one.add(4)).isTrue();
        assertThat(one.add(1)).isFalse();
        assertThat(one.held()).isEqualTo(4);
    }

    @Test
    void whatIsTakenIsHeldOrRefused() {
        Charge one = account.charge(Resource.HANDLERS);
        assertThat(one.take(4)).isTrue();
        assertThat(one.take(1)).isFalse();
        assertThat(one.held()).isEqualTo(4);
    }

    @Test
    void allOfWhatIsCountedOneByOneMayBeHandedOver() {
        Charge places = account.charge(Resource.CALLS);
        places.add(2);
        places.handOver(2);
        assertThat(places.held()).isZero();
        assertThat(ledger.held(Resource.CALLS)).isEqualTo(2);
        account.release(Resource.CALLS, 2);
    }

    @Test
    void aSmallMessageIsReadWithoutBeingAskedFor() {
        assertThat(bytes.freeBytes()).isEqualTo(UnchargedAllowance.MAX_IDLE_OBJECT_BYTES);
    }

    @Test
    void whatIsReadInManyPiecesIsHeldWhole() {
        Charge objects = account.charge(Resource.OBJECT_BYTES);
        for (int i = 0; i < 2_000; i++) {
            assertThat(objects.take(1_000)).isTrue();
        }
        assertThat(objects.held()).isEqualTo(2_000_000);
        objects.release();
        assertThat(ledger.held(Resource.OBJECT_BYTES)).isZero();
    }
}
