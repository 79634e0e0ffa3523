package dev.rpcx.codec;

import dev.rpcx.internal.schema.FieldType;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.WellKnown;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Writes and reads one field of a message, including its tag. There is one subclass for each way in which Java holds a
 * field: as a plain value, a nullable one, an {@code Optional}, a list, a set or a map. To read a field, a codec calls
 * {@link #start} once, then {@link #read} each time that the field occurs, and {@link #finish} at the end. If a field
 * with a single value occurs twice, the later value counts. The class is public only because generated codecs call it.
 */
public abstract class FieldCodec {
    final FieldType type;
    final int tag;
    final ElementCodec element;

    private FieldCodec(FieldType type, ElementCodec element) {
        this.type = type;
        this.tag = type.tag();
        this.element = element;
    }

    /** Writes the tag and the value. Writes nothing if the value is not sent, such as a default or an empty list. */
    public abstract void write(Out out, @Nullable Object value);

    /**
     * Returns the first {@code partial} for {@link #read}: the value of an absent field, or null for a list, set or
     * map.
     */
    public abstract @Nullable Object start();

    /**
     * Reads one occurrence of the field, after its tag has been read. If the field is a list or set that is not packed,
     * this method also reads the elements that directly follow with the same tag.
     *
     * @param partial result of {@link #start} or of the previous call of this method
     * @return what has been read of the field so far
     */
    public abstract @Nullable Object read(In in, @Nullable Object partial);

    /** Returns the value for the constructor or setter: what has been read, or the value of an absent field. */
    public @Nullable Object finish(@Nullable Object partial) {
        return partial;
    }

    /** Reads one element of a list or set of numbers that the sender has not packed. */
    public @Nullable Object readUnpacked(In in, @Nullable Object partial) {
        throw new IllegalStateException(type + " is never packed");
    }

    static FieldCodec of(FieldType type, ElementCodec element, @Nullable ElementCodec key) {
        return switch (type.holder()) {
            case PLAIN -> new Plain(type, element);
            case NULLABLE -> new NullableField(type, element);
            case OPTIONAL -> new OptionalField(type, element);
            case LIST -> new ListField(type, element);
            case SET -> new SetField(type, element);
            case MAP -> {
                if (key == null) {
                    throw new IllegalArgumentException(type + " has no key");
                }
                yield new MapField(type, key, element);
            }
        };
    }

    private static final class Plain extends FieldCodec {
        Plain(FieldType type, ElementCodec element) {
            super(type, element);
        }

        @Override
        public void write(Out out, @Nullable Object value) {
            if (value == null) {
                String refused = element.refusesNull();
                if (refused != null) {
                    throw out.nullValue(tag, refused);
                }
            } else if (!element.isDefault(value)) {
                out.tag(tag);
                element.write(out, value);
            }
        }

        @Override
        public @Nullable Object start() {
            return element.absent();
        }

        @Override
        public @Nullable Object read(In in, @Nullable Object partial) {
            in.take(element.objectBytes);
            return element.read(in);
        }
    }

    private static final class NullableField extends FieldCodec {
        NullableField(FieldType type, ElementCodec element) {
            super(type, element);
        }

        @Override
        public void write(Out out, @Nullable Object value) {
            if (value != null) {
                out.tag(tag);
                element.write(out, value);
            }
        }

        @Override
        public @Nullable Object start() {
            return null;
        }

        @Override
        public @Nullable Object read(In in, @Nullable Object partial) {
            in.take(element.objectBytes);
            return element.read(in);
        }
    }

    private static final class OptionalField extends FieldCodec {
        private static final int OPTIONAL_BYTES = 16;

        OptionalField(FieldType type, ElementCodec element) {
            super(type, element);
        }

        @Override
        public void write(Out out, @Nullable Object value) {
            if (value == null) {
                throw out.nullValue(tag, "an Optional");
            }
            Object inner = ((Optional<?>) value).orElse(null);
            if (inner != null) {
                out.tag(tag);
                element.write(out, inner);
            }
        }

        @Override
        public Object start() {
            return Optional.empty();
        }

        @Override
        public Object read(In in, @Nullable Object partial) {
            in.take(OPTIONAL_BYTES + element.objectBytes);
            return Optional.ofNullable(element.read(in));
        }
    }

    /**
     * Array that gathers the elements of a list while they are read. It grows by half, so its memory is in proportion
     * to the elements that have already been counted, even for hostile bytes.
     */
    private static final class Elements {
        /**
         * Bytes of a reference on a heap below 32 GiB, for counting what a large array wastes. On larger heaps this
         * waste does not matter.
         */
        private static final int REFERENCE_BYTES = 4;

        private @Nullable Object[] array;
        private int size;

        Elements(int room) {
            array = new Object[room];
        }

        int size() {
            return size;
        }

        void add(In in, @Nullable Object element) {
            if (size == array.length) {
                int length = size + (size >> 1);
                in.array((long) REFERENCE_BYTES * length);
                array = Arrays.copyOf(array, length);
            }
            array[size++] = element;
        }

        @SuppressWarnings("NullAway") // every element was checked when it was read
        List<Object> list() {
            return switch (size) {
                case 1 -> List.of(array[0]);
                case 2 -> List.of(array[0], array[1]);
                default -> List.of(size == array.length ? array : Arrays.copyOf(array, size));
            };
        }
    }

    /**
     * Codec of a list or set. Lists of messages are read and written with as few nested calls as possible, since
     * HotSpot inlines calls only to a depth of 15.
     */
    private abstract static class Repeated extends FieldCodec {
        private final boolean packed;

        /** Link to the codec of the elements if the elements are messages; otherwise null. */
        private final ElementCodec.@Nullable MessageLink message;

        /**
         * Memory in bytes that an element takes, beyond its bytes in the message and what is counted while it is read.
         */
        private final int elementBytes;

        /**
         * Creates the codec of a list or set.
         *
         * @param overheadBytes memory in bytes that the collection takes for an element, without the element itself
         */
        Repeated(FieldType type, ElementCodec element, int overheadBytes) {
            super(type, element);
            packed = type.isPacked();
            message = element.message();
            elementBytes = overheadBytes + element.objectBytes;
        }

        @Override
        public void write(Out out, @Nullable Object value) {
            if (value == null) {
                throw out.nullValue(tag, "a list or set");
            }
            Collection<?> all = (Collection<?>) value;
            if (all.isEmpty()) {
                return;
            }
            if (packed) {
                out.tag(tag);
                int start = out.beginRun();
                for (Object each : all) {
                    element.write(out, present(out, each));
                }
                out.endRun(start);
            } else if (all instanceof java.util.RandomAccess) {
                List<?> list = (List<?>) all;
                for (int i = 0, n = list.size(); i < n; i++) {
                    Object each = present(out, list.get(i));
                    out.tag(tag);
                    if (message != null) {
                        out.rawMessage(each, message.codec());
                    } else {
                        element.write(out, each);
                    }
                }
            } else {
                for (Object each : all) {
                    present(out, each);
                    out.tag(tag);
                    element.write(out, each);
                }
            }
        }

        private Object present(Out out, @Nullable Object each) {
            if (each == null) {
                throw out.nullValue(tag, "an element");
            }
            return each;
        }

        /** Counts the memory of an empty collection, and creates the object that gathers the elements. */
        abstract Object empty(In in);

        @Override
        public @Nullable Object read(In in, @Nullable Object partial) {
            Object all = partial == null ? empty(in) : partial;
            if (packed) {
                int outer = in.beginRun();
                while (!in.atEnd()) {
                    addNext(in, all);
                }
                in.endRun(outer);
            } else if (message != null && all instanceof Elements list) {
                do {
                    in.element(elementBytes);
                    list.add(in, present(in, in.message(message.codec())));
                } while (in.next(tag));
            } else {
                do {
                    addNext(in, all);
                } while (in.next(tag));
            }
            return all;
        }

        @Override
        public @Nullable Object readUnpacked(In in, @Nullable Object partial) {
            Object all = partial == null ? empty(in) : partial;
            addNext(in, all);
            return all;
        }

        private void addNext(In in, Object all) {
            in.element(elementBytes);
            // a branch instead of an overridden method: a call with two possible targets is not inlined, and this code
            // runs for each element
            if (all instanceof Elements list) {
                list.add(in, next(in));
            } else {
                ((SetField) this).add(in, all);
            }
        }

        final Object next(In in) {
            return present(in, element.read(in));
        }

        private Object present(In in, @Nullable Object each) {
            if (each == null) {
                throw in.malformed("an element of " + type.name() + " without a value");
            }
            return each;
        }

        @Override
        public @Nullable Object start() {
            return null;
        }
    }

    private static final class ListField extends Repeated {
        private static final int MIN_ROOM = 10;

        /** Memory in bytes of a list with a few elements, and of the array that gathers the elements. */
        private static final int LIST_BYTES = 104;

        /**
         * Memory in bytes for each element: the references in the list and in the array that gathers the elements, and
         * the unused references of both.
         */
        private static final int ELEMENT_OVERHEAD_BYTES = 16;

        /**
         * Number of elements for which the next list gets room: at least the size of the last list. Threads change it
         * without synchronisation. A race only makes an array longer or shorter than needed.
         */
        private int expected = MIN_ROOM;

        ListField(FieldType type, ElementCodec element) {
            super(type, element, ELEMENT_OVERHEAD_BYTES);
        }

        @Override
        Object empty(In in) {
            in.take(LIST_BYTES);
            return new Elements(Math.max(MIN_ROOM, in.room(expected)));
        }

        @Override
        public Object finish(@Nullable Object partial) {
            if (partial == null) {
                return List.of();
            }
            Elements elements = (Elements) partial;
            int size = elements.size();
            if (size > expected || size < expected >> 1 && expected > MIN_ROOM) {
                expected = Math.max(MIN_ROOM, size);
            }
            return elements.list();
        }
    }

    private static final class SetField extends Repeated {
        private final boolean isCompared;
        private final KeyHashes.Keys keys;

        SetField(FieldType type, ElementCodec element) {
            super(type, element, KeyHashes.overheadBytes(element));
            isCompared = !element.hasOrder();
            keys = KeyHashes.Keys.of(type.shape());
        }

        @Override
        Object empty(In in) {
            in.collection(KeyHashes.COLLECTION_BYTES);
            return isCompared ? new Counted(new KeyHashes(in, keys)) : new LinkedHashSet<Object>();
        }

        /** Reads an element, and adds it to the set. The caller has already counted it as an element of the message. */
        @SuppressWarnings("unchecked")
        private void add(In in, Object partial) {
            if (partial instanceof Counted counted) {
                counted.hashes.beginKey(in);
                Object each = next(in);
                counted.hashes.endKey(in);
                counted.add(in, each);
            } else {
                Set<Object> set = (Set<Object>) partial;
                Object each = next(in);
                in.countLookup(set.size());
                set.add(each);
            }
        }

        @Override
        public Object finish(@Nullable Object partial) {
            if (partial == null) {
                return Set.of();
            }
            return Collections.unmodifiableSet(partial instanceof Counted counted ? counted.set : (Set<?>) partial);
        }

        private static final class Counted {
            private final Set<Object> set = new LinkedHashSet<>();
            private final KeyHashes hashes;

            Counted(KeyHashes hashes) {
                this.hashes = hashes;
            }

            void add(In in, Object each) {
                hashes.beforeAdding(in, each, set.size());
                if (set.add(each)) {
                    hashes.added(in, set.size());
                }
            }
        }
    }

    private static final class MapField extends FieldCodec {
        private final ElementCodec key;
        private final boolean isCompared;
        private final KeyHashes.Keys keys;
        private final int entryBytes;
        private final boolean hasEmpty;
        private final int keyTag;
        private final int valueTag;

        MapField(FieldType type, ElementCodec key, ElementCodec value) {
            super(type, value);
            this.key = key;
            isCompared = !key.hasOrder();
            keys = KeyHashes.Keys.of(java.util.Objects.requireNonNull(type.key()));
            entryBytes = KeyHashes.overheadBytes(key) + key.objectBytes + value.objectBytes;
            // a message or well-known type can be read even if it has no bytes; a scalar without a default, such as a
            // UUID, cannot
            hasEmpty = type.shape() instanceof MessageType || type.shape() instanceof WellKnown;
            keyTag = 1 << 3 | java.util.Objects.requireNonNull(type.key()).wireType();
            valueTag = 2 << 3 | type.shape().wireType();
        }

        @Override
        public void write(Out out, @Nullable Object value) {
            if (value == null) {
                throw out.nullValue(tag, "a map");
            }
            for (Map.Entry<?, ?> each : ((Map<?, ?>) value).entrySet()) {
                Object k = each.getKey();
                Object v = each.getValue();
                if (k == null || v == null) {
                    throw out.nullValue(tag, k == null ? "a key" : "a value");
                }
                out.tag(tag);
                int start = out.beginEntry();
                out.tag(keyTag);
                key.write(out, k);
                out.tag(valueTag);
                element.write(out, v);
                out.endRun(start);
            }
        }

        @Override
        public @Nullable Object start() {
            return null;
        }

        @Override
        public Object read(In in, @Nullable Object partial) {
            Counted counted = partial == null ? empty(in) : (Counted) partial;
            in.element(entryBytes);
            int outer = in.beginEntry();
            KeyHashes hashes = counted.hashes;
            if (hashes != null) {
                hashes.noKey();
            }
            Object k = key.absent();
            Object v = element.absent();
            for (int next; (next = in.tag()) != 0; ) {
                if (next == keyTag && hashes != null) {
                    hashes.beginKey(in);
                    k = key.read(in);
                    hashes.endKey(in);
                } else if (next == keyTag) {
                    k = key.read(in);
                } else if (next == valueTag) {
                    v = element.read(in);
                } else {
                    in.skipOfEntry(next, type.name());
                }
            }
            if (v == null && hasEmpty) {
                v = in.ofNothing(element);
            }
            in.endEntry(outer);
            if (k == null || v == null) {
                throw in.malformed("an entry of " + type.name() + " without a " + (k == null ? "key" : "value"));
            }
            counted.put(in, k, v);
            return counted;
        }

        private Counted empty(In in) {
            in.collection(KeyHashes.COLLECTION_BYTES);
            return new Counted(isCompared ? new KeyHashes(in, keys) : null);
        }

        @Override
        public Object finish(@Nullable Object partial) {
            return partial == null ? Map.of() : Collections.unmodifiableMap(((Counted) partial).map);
        }

        private static final class Counted {
            private final Map<Object, Object> map = new LinkedHashMap<>();

            /** Counts the keys that have the same hash; null if the keys have an order. */
            private final @Nullable KeyHashes hashes;

            Counted(@Nullable KeyHashes hashes) {
                this.hashes = hashes;
            }

            void put(In in, Object k, Object v) {
                KeyHashes known = hashes;
                if (known != null) {
                    known.beforeAdding(in, k, map.size());
                } else {
                    in.countLookup(map.size());
                }
                if (map.put(k, v) == null && known != null) {
                    known.added(in, map.size());
                }
            }
        }
    }
}
