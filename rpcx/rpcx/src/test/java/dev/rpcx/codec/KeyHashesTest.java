package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.schema.FieldType;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.Scalar;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.internal.schema.Shape;
import dev.rpcx.internal.schema.WellKnown;
import java.math.BigDecimal;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.Test;

/**
 * Tests what is known about keys from their types alone. {@link KeyOrderTest} tests what messages with such keys cost.
 */
class KeyHashesTest {
    record Small(int a, String b) {}

    record Eight(int a, int b, int c, int d, int e, int f, int g, int h) {}

    record Nine(int a, int b, int c, int d, int e, int f, int g, int h, int i) {}

    record Nested(Small small) {}

    record WithSet(Set<Integer> all) {}

    record WithMap(Map<String, String> all) {}

    record WithList(List<Integer> all) {}

    record Price(BigDecimal amount) {}

    record Version(int number) implements Comparable<Version> {
        @Override
        public int compareTo(Version other) {
            return Integer.compare(number, other.number);
        }
    }

    record Money(BigDecimal amount) implements Comparable<Money> {
        private static final Comparator<Money> BY_AMOUNT = Comparator.comparing(Money::amount);

        @Override
        public int compareTo(Money other) {
            return BY_AMOUNT.compare(this, other);
        }
    }

    sealed interface Plain {}

    record OneText(String text) implements Plain {}

    record OnePrice(BigDecimal amount) implements Plain {}

    sealed interface Broad {}

    record Narrow(int number) implements Broad {}

    record Wide(int a, int b, int c, int d, int e, int f, int g, int h, int i) implements Broad {}

    sealed interface Ordered {}

    record Word(String text) implements Ordered {}

    record Sum(BigDecimal amount) implements Ordered, Comparable<Sum> {
        @Override
        public int compareTo(Sum other) {
            return amount.compareTo(other.amount);
        }
    }

    record Keyed(
            Set<String> texts,
            Set<BigDecimal> decimals,
            Set<Small> smalls,
            Set<Eight> eights,
            Set<Nine> nines,
            Set<Nested> nested,
            Set<WithSet> sets,
            Set<WithMap> maps,
            Set<WithList> lists,
            Set<Price> prices,
            Set<Version> versions,
            Set<Money> money,
            Set<Plain> plains,
            Set<Broad> broads,
            Set<Ordered> ordered,
            Map<Money, Integer> byMoney) {}

    private static KeyHashes.Keys keys(String field) {
        FieldType found = new Schema(LockFile.none())
                .value(Keyed.class).fields().stream()
                        .filter(each -> each.name().equals(field))
                        .findFirst()
                        .orElseThrow();
        Shape key = found.holder() == FieldType.Holder.MAP ? Objects.requireNonNull(found.key()) : found.shape();
        return KeyHashes.Keys.of(key);
    }

    private static KeyHashes.Keys keys(boolean isDeep, boolean isWide, boolean costsBoth) {
        return new KeyHashes.Keys(isDeep, isWide, costsBoth);
    }

    @Test
    void keysWithoutSetsAreAsLargeAsTheirBytesUnlessTheyHaveMessagesOrManyComponents() {
        for (String field : List.of("texts", "smalls", "eights", "lists", "prices", "versions", "plains")) {
            assertThat(keys(field)).as(field).isEqualTo(keys(false, false, false));
        }
        for (String field : List.of("nines", "nested", "broads")) {
            assertThat(keys(field)).as(field).isEqualTo(keys(false, true, false));
        }
    }

    @Test
    void keysThatHoldSetsOrMapsAreDeep() {
        assertThat(keys("sets")).isEqualTo(keys(true, false, true));
        assertThat(keys("maps")).isEqualTo(keys(true, false, true));
    }

    @Test
    void keysThatAreOrderedByDecimalsCostEachOther() {
        for (String field : List.of("decimals", "money", "ordered", "byMoney")) {
            assertThat(keys(field)).as(field).isEqualTo(keys(false, true, true));
        }
    }

    @Test
    void keysWithoutAnOrderHaveAPlaceAmongTheHashes() {
        assertThat(KeyHashes.overheadBytes(element(Scalar.INT))).isEqualTo(64);
        assertThat(KeyHashes.overheadBytes(element(WellKnown.LOCAL_DATE))).isEqualTo(96);
    }

    @SuppressWarnings("NullAway") // only messages have a link
    private static ElementCodec element(Shape shape) {
        return ElementCodec.of(shape, null);
    }
}
