package dev.rpcx.internal.ledger;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.BitSet;
import java.util.HashSet;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class AddressGroupsTest {
    private final AddressGroups groups = new AddressGroups();

    private Set<Integer> ofAll(int place) {
        Set<Integer> all = new TreeSet<>();
        for (int connection = -20; connection < 20; connection++) {
            all.add(groups.groupOf(place, connection));
        }
        return all;
    }

    @ParameterizedTest
    @CsvSource({"0, 16", "1, 16", "2, 8", "3, 4", "4, 4", "5, 2", "8, 2", "9, 1", "16, 1", "17, 1", "1000, 1"})
    void anAddressHasAsManyGroupsAsOthersLeave(int addresses, int each) {
        for (int i = 0; i < addresses; i++) {
            assertThat(groups.take()).isEqualTo(i);
        }
        assertThat(groups.groupsPerAddress()).isEqualTo(each);
        Set<Integer> seen = new HashSet<>();
        for (int i = 0; i < Math.min(addresses, AddressGroups.COUNT); i++) {
            Set<Integer> own = ofAll(i);
            assertThat(own).hasSize(each).allMatch(group -> group >= 0 && group < AddressGroups.COUNT);
            // The groups of an address follow each other, and the first one is a multiple of their number. So an update
            // of the limit finds the groups that belong together.
            assertThat(own.iterator().next() % each).isZero();
            assertThat(own.stream().map(group -> group / each).distinct()).hasSize(1);
            assertThat(seen).doesNotContainAnyElementsOf(own);
            seen.addAll(own);
        }
    }

    @Test
    void anAddressThatReturnsHasNoOtherPlaceThanTheFreeOnes() {
        for (int i = 0; i < 5; i++) {
            groups.take();
        }
        for (int i = 0; i < 100; i++) {
            groups.give(2);
            assertThat(groups.take()).isEqualTo(2);
        }
    }

    @Test
    void theHighestPlaceDecidesHowManyGroupsAnAddressHas() {
        for (int i = 0; i < 9; i++) {
            groups.take();
        }
        for (int i = 0; i < 8; i++) {
            groups.give(i);
        }
        assertThat(groups.groupsPerAddress()).isEqualTo(1);
        groups.give(8);
        assertThat(groups.groupsPerAddress()).isEqualTo(AddressGroups.COUNT);
    }

    @Test
    void twoAddressesShareNoGroupAsLongAsThereAreEnough() {
        Random random = new Random(1);
        BitSet taken = new BitSet();
        for (int step = 0; step < 10_000; step++) {
            int place = random.nextInt(AddressGroups.COUNT);
            if (taken.get(place)) {
                taken.clear(place);
                groups.give(place);
            } else if (taken.cardinality() < AddressGroups.COUNT) {
                int given = groups.take();
                assertThat(given).isEqualTo(taken.nextClearBit(0));
                taken.set(given);
            }
            Set<Integer> seen = new HashSet<>();
            int all = 0;
            for (int of = taken.nextSetBit(0); of >= 0; of = taken.nextSetBit(of + 1)) {
                Set<Integer> own = ofAll(of);
                all += own.size();
                seen.addAll(own);
            }
            assertThat(seen).as("places %s", taken).hasSize(all);
        }
    }
}
