package dev.rpcx.internal;

import java.util.AbstractMap;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Map that cannot be changed, and therefore can be passed to other code without a copy. The entries keep the order of
 * the map that was given to the constructor.
 */
public final class FrozenMap<K, V> extends AbstractMap<K, V> {
    private final Map<K, V> map;

    /** Wraps {@code map} without copying it. The caller must not use {@code map} afterwards. */
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

    /**
     * Calls {@code action} for each entry. Unlike the iterator of {@link #entrySet}, this method allocates no object
     * for an entry.
     */
    @Override
    public void forEach(BiConsumer<? super K, ? super V> action) {
        map.forEach(action);
    }

    /** Returns a new, mutable map with the same entries in the same order. */
    public LinkedHashMap<K, V> copy() {
        return new LinkedHashMap<>(map);
    }

    @Override
    public Set<Map.Entry<K, V>> entrySet() {
        return Collections.unmodifiableMap(map).entrySet();
    }
}
