package dev.rpcx.internal;

import java.util.AbstractMap;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Immutable map, in the order of the map from which it was made. It need not be copied when it is passed to other code.
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
     * Calls {@code action} for each entry. This allocates nothing for an entry, unlike the iterator of
     * {@link #entrySet}.
     */
    @Override
    public void forEach(BiConsumer<? super K, ? super V> action) {
        map.forEach(action);
    }

    /** Returns a new map with the same entries in the same order, which the caller may change. */
    public LinkedHashMap<K, V> copy() {
        return new LinkedHashMap<>(map);
    }

    @Override
    public Set<Map.Entry<K, V>> entrySet() {
        return Collections.unmodifiableMap(map).entrySet();
    }
}
