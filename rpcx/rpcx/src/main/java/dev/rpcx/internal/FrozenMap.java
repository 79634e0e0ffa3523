package dev.rpcx.internal;

import java.util.AbstractMap;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** Immutable map, which need not be copied when it is handed on. Its entries keep their order. */
public final class FrozenMap<K, V> extends AbstractMap<K, V> {
    private final Map<K, V> map;

    /** @param map map that is not copied, so the caller must not use it afterwards */
    public FrozenMap(LinkedHashMap<K, V> map) {
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

    /** Allocates nothing for an entry, unlike the iterator of {@link #entrySet}. */
    @Override
    public void forEach(BiConsumer<? super K, ? super V> action) {
        map.forEach(action);
    }

    /** Returns a new map with the same entries, which the caller may change. */
    public LinkedHashMap<K, V> copy() {
        return new LinkedHashMap<>(map);
    }

    @Override
    public Set<Map.Entry<K, V>> entrySet() {
        return Collections.unmodifiableMap(map).entrySet();
    }
}
