package dev.parley.spi;

import java.lang.reflect.Constructor;
import java.lang.reflect.RecordComponent;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A record of one large content and a few strings about it, such as a photo and its name: one component is a byte
 * array, the others are strings. It serves technologies whose documentation sends such content by itself, as a body or
 * a stream, and not within a message. Thread-safe.
 */
public final class Bulk<R extends Record> {
    /** Looked up on the hot path, so what reflection says is kept. */
    private static final ClassValue<Optional<Bulk<?>>> KNOWN = new ClassValue<>() {
        @Override
        protected Optional<Bulk<?>> computeValue(Class<?> type) {
            return read(type.asSubclass(Record.class)).map(bulk -> bulk);
        }
    };

    private final Class<R> type;
    private final RecordComponent content;
    private final List<RecordComponent> words;
    private final Constructor<R> canonical;

    private Bulk(Class<R> type, RecordComponent content, List<RecordComponent> words, Constructor<R> canonical) {
        this.type = type;
        this.content = content;
        this.words = words;
        this.canonical = canonical;
    }

    /** Empty for any other record. */
    @SuppressWarnings({"unchecked", "rawtypes"}) // a class's own entry
    public static <R extends Record> Optional<Bulk<R>> of(Class<R> type) {
        return (Optional) KNOWN.get(type);
    }

    private static <R extends Record> Optional<Bulk<R>> read(Class<R> type) {
        RecordComponent content = null;
        List<RecordComponent> words = new ArrayList<>();
        List<Class<?>> types = new ArrayList<>();
        for (RecordComponent component : type.getRecordComponents()) {
            types.add(component.getType());
            if (component.getType() == byte[].class && content == null) {
                content = component;
            } else if (component.getType() == String.class) {
                words.add(component);
            } else {
                return Optional.empty();
            }
        }
        if (content == null) {
            return Optional.empty();
        }
        try {
            return Optional.of(new Bulk<>(
                    type, content, List.copyOf(words), type.getDeclaredConstructor(types.toArray(Class[]::new))));
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException("every record has its canonical constructor", e);
        }
    }

    /** The content itself, not a copy. */
    public byte[] content(R value) {
        return (byte[]) read(content, value);
    }

    /** The strings by the names of their components, in the order of the components. */
    public Map<String, String> words(R value) {
        Map<String, String> read = new LinkedHashMap<>();
        words.forEach(component -> read.put(component.getName(), (String) read(component, value)));
        return read;
    }

    public List<String> wordNames() {
        return words.stream().map(RecordComponent::getName).toList();
    }

    /** @throws CallException {@link CallException.Code#PROTOCOL} if a word is missing */
    public R of(Map<String, String> given, byte[] bytes) {
        RecordComponent[] components = type.getRecordComponents();
        @Nullable Object[] values = new Object[components.length];
        for (int i = 0; i < components.length; i++) {
            values[i] = components[i].getType() == byte[].class ? bytes : given.get(components[i].getName());
            if (values[i] == null) {
                throw new CallException(
                        CallException.Code.PROTOCOL,
                        "not a " + type.getSimpleName() + ": " + components[i].getName() + " is missing");
            }
        }
        try {
            return canonical.newInstance(values);
        } catch (ReflectiveOperationException e) {
            throw CallException.of(e.getCause() == null ? e : e.getCause());
        }
    }

    private static Object read(RecordComponent component, Record value) {
        try {
            return component.getAccessor().invoke(value);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("a record's accessors are public and throw nothing", e);
        }
    }
}
