package dev.rpcx.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class FrozenMapTest {
    private static FrozenMap<String, Integer> map(String... keys) {
        LinkedHashMap<String, Integer> entries = new LinkedHashMap<>();
        for (String key : keys) {
            entries.put(key, entries.size());
        }
        return new FrozenMap<>(entries);
    }

    @Test
    void itIsTheMapThatItWasMadeOf() {
        FrozenMap<String, Integer> map = map("b", "a", "c");
        Map<String, Integer> same = Map.of("b", 0, "a", 1, "c", 2);
        assertThat(map).isEqualTo(same).hasSameHashCodeAs(same).hasToString("{b=0, a=1, c=2}");
        assertThat(map.size()).isEqualTo(3);
        assertThat(map.containsKey("a")).isTrue();
        assertThat(map.containsKey("A")).isFalse();
        assertThat(map.get("a")).isEqualTo(1);
        assertThat(map.get("A")).isNull();
        assertThat(map.keySet()).containsExactly("b", "a", "c");
        List<String> told = new ArrayList<>();
        map.forEach((key, value) -> told.add(key + value));
        assertThat(told).containsExactly("b0", "a1", "c2");
        assertThat(map().isEmpty()).isTrue();
    }

    @Test
    void nobodyChangesIt() {
        FrozenMap<String, Integer> map = map("a");
        Map.Entry<String, Integer> entry = map.entrySet().iterator().next();
        Iterator<String> keys = map.keySet().iterator();
        keys.next();
        assertThatThrownBy(() -> map.put("a", 2)).isInstanceOf(UnsupportedOperationException.class);
        assertThatThrownBy(() -> map.remove("a")).isInstanceOf(UnsupportedOperationException.class);
        assertThatThrownBy(map::clear).isInstanceOf(UnsupportedOperationException.class);
        assertThatThrownBy(() -> entry.setValue(2)).isInstanceOf(UnsupportedOperationException.class);
        assertThatThrownBy(keys::remove).isInstanceOf(UnsupportedOperationException.class);
        assertThatThrownBy(() -> map.merge("a", 2, Integer::sum)).isInstanceOf(UnsupportedOperationException.class);
        assertThat(map).containsExactly(Map.entry("a", 0));
    }

    @Test
    void aCopyIsOfItsOwn() {
        FrozenMap<String, Integer> map = map("b", "a");
        LinkedHashMap<String, Integer> copy = map.copy();
        assertThat(copy).containsExactly(Map.entry("b", 0), Map.entry("a", 1));
        copy.put("c", 2);
        assertThat(map).hasSize(2);
    }
}
