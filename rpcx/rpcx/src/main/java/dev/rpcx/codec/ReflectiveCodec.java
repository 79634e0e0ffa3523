package dev.rpcx.codec;

import dev.rpcx.internal.schema.MessageType;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.AccessibleObject;
import java.util.Arrays;
import java.util.Comparator;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Writes and reads records and classes through method handles, if no codec class is generated for them. The bytes are
 * the same as with a generated codec.
 */
final class ReflectiveCodec extends MessageCodec {
    private final FieldsByNumber fields;
    private final MethodHandle[] getters;
    private final MethodHandle[] setters;
    private final MethodHandle constructor;
    private final int[] order;
    private final boolean hasSubclasses;

    ReflectiveCodec(MessageType type, FieldCodec[] fields) {
        super(type);
        this.fields = new FieldsByNumber(fields);
        order = type.inOrderOfNumbers();
        hasSubclasses = hasSubclasses(type);
        MethodHandles.Lookup lookup = MethodHandles.lookup();
        try {
            getters = new MethodHandle[fields.length];
            setters = new MethodHandle[type.setters().size()];
            for (int i = 0; i < fields.length; i++) {
                open(type.getters().get(i));
                getters[i] = lookup.unreflect(type.getters().get(i))
                        .asType(MethodType.methodType(Object.class, Object.class));
            }
            for (int i = 0; i < setters.length; i++) {
                open(type.setters().get(i));
                setters[i] = lookup.unreflect(type.setters().get(i))
                        .asFixedArity()
                        .asType(MethodType.methodType(void.class, Object.class, Object.class));
            }
            open(type.constructor());
            MethodHandle made = lookup.unreflectConstructor(type.constructor());
            constructor = setters.length > 0
                    ? made.asType(MethodType.methodType(Object.class))
                    : made.asFixedArity()
                            .asType(MethodType.genericMethodType(fields.length))
                            .asSpreader(Object[].class, fields.length);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(type + " cannot be reached by reflection", e);
        }
    }

    private static void open(AccessibleObject member) {
        member.trySetAccessible();
    }

    @Override
    public void write(Object value, Out out) {
        if (hasSubclasses) {
            expectNoSubclass(value);
        }
        try {
            for (int i : order) {
                fields.at(i).write(out, (Object) getters[i].invokeExact(value));
            }
        } catch (Throwable e) {
            throw ReflectiveCodec.<RuntimeException>unchecked(e);
        }
    }

    @Override
    public Object read(In in) {
        @Nullable Object[] values = fields.read(in);
        try {
            if (setters.length == 0) {
                return (Object) constructor.invokeExact(values);
            }
            Object bean = (Object) constructor.invokeExact();
            for (int i = 0; i < setters.length; i++) {
                setters[i].invokeExact(bean, values[i]);
            }
            return bean;
        } catch (Throwable e) {
            throw ReflectiveCodec.<RuntimeException>unchecked(e);
        }
    }

    /**
     * Throws the given exception unchanged, even a checked one. This does no harm, because {@link In#read} and
     * {@link Out#write} catch exceptions of every kind.
     */
    @SuppressWarnings("unchecked")
    private static <E extends Throwable> RuntimeException unchecked(Throwable e) throws E {
        throw (E) e;
    }

    /**
     * Finds the fields of a message by their numbers, and reads their values into an array in the order of declaration.
     */
    static final class FieldsByNumber {
        private final FieldCodec[] fields;
        /**
         * Maps each field number below 256 to the index of the field plus 1, or to 0 if no field is found here. Only
         * the first 127 fields are in this array, since an index has to fit into a byte. All other fields are found
         * through {@code sortedNumbers}.
         */
        private final byte[] dense;

        private final int[] sortedNumbers;
        private final int[] sortedIndexes;

        FieldsByNumber(FieldCodec[] fields) {
            this.fields = fields;
            this.dense = new byte[256];
            sortedIndexes = IntStream.range(0, fields.length)
                    .boxed()
                    .sorted(Comparator.comparingInt(i -> fields[i].type.number()))
                    .mapToInt(i -> i)
                    .toArray();
            sortedNumbers = IntStream.of(sortedIndexes)
                    .map(i -> fields[i].type.number())
                    .toArray();
            for (int i = 0; i < fields.length && i < 127; i++) {
                int number = fields[i].type.number();
                if (number < dense.length) {
                    dense[number] = (byte) (i + 1);
                }
            }
        }

        FieldCodec at(int index) {
            return fields[index];
        }

        int size() {
            return fields.length;
        }

        @Nullable
        Object[] read(In in) {
            @Nullable Object[] values = new Object[fields.length];
            for (int i = 0; i < values.length; i++) {
                values[i] = fields[i].start();
            }
            for (int tag; (tag = in.tag()) != 0; ) {
                int i = index(tag >>> 3);
                if (i < 0) {
                    in.skip(tag);
                    continue;
                }
                FieldCodec field = fields[i];
                if (tag == field.tag) {
                    values[i] = field.read(in, values[i]);
                } else if (field.type.isPacked()
                        && (tag & 7) == field.type.shape().wireType()) {
                    values[i] = field.readUnpacked(in, values[i]);
                } else {
                    in.skip(tag);
                }
            }
            for (int i = 0; i < values.length; i++) {
                values[i] = fields[i].finish(values[i]);
            }
            return values;
        }

        int index(int number) {
            if (number < dense.length && dense[number] != 0) {
                return dense[number] - 1;
            }
            int found = Arrays.binarySearch(sortedNumbers, number);
            return found < 0 ? -1 : sortedIndexes[found];
        }
    }
}
