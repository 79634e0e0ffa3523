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
 * Writes one field of a message with its tag, and reads the field after its tag. There is one subclass for each way in
 * which Java holds a field, for example as a list or an {@code Optional}. To read a field, the codec of the message
 * calls {@link #start} once, {@link #read} or {@link #readUnpacked} for each occurrence of the field, and
 * {@link #finish} at the end. The codec of a sealed type calls only {@link #read}. The class is public only because
 * generated codecs call it.
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

    /**
     * Writes the tag and the value of the field. Writes nothing for a value that is not sent, such as the default of a
     * plain field or an empty list.
     */
    public abstract void write(Out out, @Nullable Object value);

    /**
     * Returns the object to pass to the first call of {@link #read}. For a list, set or map, the object is null. For
     * any other field, it is the value that the field has if the message does not contain the field.
     */
    public abstract @Nullable Object start();

    /**
     * Reads one occurrence of the field, whose tag has already been read. For a list or set that is not packed, this
     * method also reads the elements that directly follow with the same tag. If a field with a single value occurs
     * twice, the later value counts.
     *
     * @param partial result of {@link #start}, or of the previous call of this method or of {@link #readUnpacked}
     * @return what has been read of the field so far
     */
    public abstract @Nullable Object read(In in, @Nullable Object partial);

    /**
     * Returns the value of the field for the constructor or setter of the Java object. A field that did not occur gets
     * its default, such as 0, null or an empty list.
     */
    public @Nullable Object finish(@Nullable Object partial) {
        return partial;
    }

    /**
     * Reads one element of a list or set of numbers, booleans or enums, if the sender has written each element with its
     * own tag instead of packing the elements.
     */
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
     * Collects the elements of a list in an array while the list is read. The array grows by half, so that hostile
     * bytes cannot make it much larger than the elements that have been read.
     */
    private static final class Elements {
        /**
         * The number of bytes that a reference takes on a heap below 32 GiB. This number is used to count the memory
         * that a large array wastes. On larger heaps this waste does not matter.
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
     * The codec of a list or set. Lists of messages are written and read with few nested calls, because HotSpot inlines
     * calls only to a depth of 15.
     */
    private abstract static class Repeated extends FieldCodec {
        private final boolean packed;

        /** Link to the codec of the elements of the list or set, if these elements are messages; null otherwise. */
        private final ElementCodec.@Nullable MessageLink message;

        /**
         * The memory in bytes that {@link In#element} counts for one element. Two things are counted elsewhere: the
         * bytes of the element in the message, and the object of an element that is a message.
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

        /**
         * Counts the memory of an empty list or set, and creates the object that collects the elements during reading.
         */
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
            // this is a branch instead of an overridden method, since HotSpot may not inline a call with two possible
            // targets, and this code runs for each element
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

        /** The memory in bytes of a list with a few elements and of the array that collects them. */
        private static final int LIST_BYTES = 104;

        /**
         * The memory in bytes that is counted for the references to one element. The references are in the list, and in
         * the arrays that collect the elements before the list is created. The unused places of these arrays are
         * included.
         */
        private static final int ELEMENT_OVERHEAD_BYTES = 16;

        /**
         * The number of elements for which an array is created when the next list begins, as far as {@link In#room}
         * allows. The number is at least the size of the previous list. Threads that read lists use this field without
         * synchronisation. If they race, an array is only longer or shorter than needed.
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

        /** Reads one element and adds it to the set. The caller has called {@link In#element} for the element. */
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

            /**
             * Counts the map's keys that have the same hash, since comparing such keys takes time. The field is null
             * for keys that have an order, because these are found quickly.
             */
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
