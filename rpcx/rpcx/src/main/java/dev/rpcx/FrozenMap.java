package dev.rpcx;

import java.util.AbstractMap;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** Map that nobody changes any more, so that whoever gets it has no need to copy it. Its entries keep their order. */
final class FrozenMap<K, V> extends AbstractMap<K, V> {
    private final Map<K, V> map;

    /** @param map is not copied: its maker lets go of it */
    FrozenMap(LinkedHashMap<K, V> map) {
        this.map = map;
    }

    @Override
    public int size() {
        return map.size();
    }

    @Override
    public boolean containsKey(@Nullable Object key) {
        return map.containsKey(key);
    }

    @Override
    public @Nullable V get(@Nullable Object key) {
        return map.get(key);
    }

    /** Makes no object for each entry, as the iterator of {@link #entrySet} does. */
    @Override
    public void forEach(BiConsumer<? super K, ? super V> action) {
        map.forEach(action);
    }

    /** A map of its own, with the same entries. */
    LinkedHashMap<K, V> copy() {
        return new LinkedHashMap<>(map);
    }

    @Override
    public Set<Map.Entry<K, V>> entrySet() {
        return Collections.unmodifiableMap(map).entrySet();
    }
}
