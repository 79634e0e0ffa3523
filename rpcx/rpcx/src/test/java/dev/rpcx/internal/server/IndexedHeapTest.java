package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.PoolSharesTest;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Tests those uses of an {@link IndexedHeap} that {@link PoolSharesTest} does not cover. */
class IndexedHeapTest {
    private static final class One extends IndexedHeap.Entry {
        One(long order) {
            this.order = order;
        }
    }

    /** No other element is taken out in its place, and the queue can be used as before. */
    @Test
    void whatDoesNotStandInAQueueIsNotTakenOutOfIt() {
        IndexedHeap<One> queue = new IndexedHeap<>();
        One first = new One(1);
        One second = new One(2);
        queue.remove(first);
        assertThat(queue.isEmpty()).isTrue();
        queue.add(second);
        queue.remove(first);
        assertThat(queue.first()).isSameAs(second);
        queue.add(first);
        queue.remove(first);
        queue.remove(first);
        assertThat(queue.first()).isSameAs(second);
        queue.remove(second);
        assertThat(queue.isEmpty()).isTrue();
        assertThat(queue.first()).isNull();
    }

    /** There is nothing to look at behind the end of the array. */
    @Test
    void aQueueWhoseArrayIsFullIsLookedAtToItsEnd() {
        IndexedHeap<One> queue = new IndexedHeap<>();
        IndexedHeap<One> other = new IndexedHeap<>();
        List<One> others = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            others.add(new One(i));
            other.add(others.get(i));
        }
        One first = new One(1);
        One second = new One(2);
        queue.add(first);
        queue.add(second);
        List<One> seen = new ArrayList<>();
        queue.forEach(seen::add);
        assertThat(seen).containsExactlyInAnyOrder(first, second);
        others.forEach(queue::remove);
        seen.clear();
        queue.forEach(seen::add);
        assertThat(seen).containsExactlyInAnyOrder(first, second);
    }

    /** The test compares the queue with a tree after each step. */
    @Test
    void theFirstHasTheLowestOrderWhoeverComesAndGoes() {
        for (int seed = 0; seed < 30; seed++) {
            Random random = new Random(seed);
            IndexedHeap<One> queue = new IndexedHeap<>();
            TreeMap<Long, One> tree = new TreeMap<>();
            // the queue grows to some hundred elements, and is emptied at the end
            for (int step = 0; step < 400; step++) {
                One one = new One(random.nextLong());
                queue.add(one);
                tree.put(one.order, one);
                if (random.nextInt(3) == 0) {
                    List<One> all = new ArrayList<>(tree.values());
                    take(queue, tree, all.get(random.nextInt(all.size())));
                }
                assertThat(queue.first()).isSameAs(first(tree));
            }
            Set<One> each = new HashSet<>();
            queue.forEach(one -> assertThat(each.add(one)).isTrue());
            assertThat(each).containsExactlyInAnyOrderElementsOf(tree.values());
            while (!tree.isEmpty()) {
                assertThat(queue.isEmpty()).isFalse();
                assertThat(queue.first()).isSameAs(first(tree));
                take(queue, tree, tree.firstEntry().getValue());
            }
            assertThat(queue.isEmpty()).isTrue();
            queue.forEach(one -> assertThat(one).isNull());
        }
    }

    private static @Nullable One first(TreeMap<Long, One> tree) {
        return tree.isEmpty() ? null : tree.firstEntry().getValue();
    }

    private static void take(IndexedHeap<One> queue, TreeMap<Long, One> tree, One one) {
        queue.remove(one);
        tree.remove(one.order);
    }
}
