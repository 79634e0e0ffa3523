package dev.rpcx.codec;

import dev.rpcx.internal.schema.FieldType;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Scalar;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Arrays;

/**
 * Codec of one message, which writes and reads the message's fields. It is public only because generated classes extend
 * it, which live in the packages of the types that they encode.
 */
public abstract class MessageCodec {
    private final MessageType type;

    /**
     * Numbers of the message's fields in ascending order, for binary search: a message that is read may bring many
     * numbers that are not among them.
     */
    private final int[] numbers;

    /**
     * Estimated bytes of memory of one object, without the objects that it refers to. A reference is taken to have four
     * bytes.
     */
    final int shallowBytes;

    /**
     * Number of bytes that the length of the last message of this type took, which is the guess for the next one. If
     * threads race, the cost is that the bytes of a message are moved, and nothing else.
     */
    int lengthWidth = 1;

    /** Number of this codec among all codecs of its {@link Codecs}, which sets it before anybody uses this codec. */
    int number;

    /**
     * Makes a codec of this message. The constructor is protected for the sake of generated codecs, which live in other
     * packages.
     */
    protected MessageCodec(MessageType type) {
        this.type = type;
        numbers = type.fields().stream().mapToInt(FieldType::number).sorted().toArray();
        shallowBytes = shallowBytes(type);
    }

    private static int shallowBytes(MessageType type) {
        if (type.kind() == MessageType.Kind.ONEOF) {
            return 0;
        }
        int bytes = 12 + (type.kind() == MessageType.Kind.BEAN ? beanBytes(type) : componentBytes(type));
        return bytes + 7 & ~7;
    }

    private static int componentBytes(MessageType type) {
        int bytes = 0;
        for (FieldType field : type.fields()) {
            boolean wide = field.holder() == FieldType.Holder.PLAIN
                    && (field.shape() == Scalar.LONG || field.shape() == Scalar.DOUBLE);
            bytes += wide ? 8 : 4;
        }
        return bytes;
    }

    /**
     * Returns the bytes of all non-static fields of a class and its superclasses: each object has them, whether they
     * are components of the message or not.
     */
    private static int beanBytes(MessageType type) {
        int bytes = 0;
        for (Class<?> c = type.javaClass(); c != null && c != Object.class; c = c.getSuperclass()) {
            for (Field field : c.getDeclaredFields()) {
                if (!Modifier.isStatic(field.getModifiers())) {
                    bytes += field.getType() == long.class || field.getType() == double.class ? 8 : 4;
                }
            }
        }
        return bytes;
    }

    /** Writes the fields of the message, without a length before them. */
    public abstract void write(Object value, Out out);

    /** Reads fields until the end of the input. */
    public abstract Object read(In in);

    /**
     * Refuses an object of a subclass of a class with accessors. It would arrive as an object of the superclass,
     * without what the subclass has in addition.
     */
    protected final void expectNoSubclass(Object value) {
        if (value.getClass() != type.javaClass()) {
            throw new CodecException(
                    CodecException.Code.REFUSED,
                    type.protoName() + ": an object of a subclass would arrive as its superclass (expected: one of the"
                            + " class itself, or a sealed interface that has both as cases)",
                    new IllegalArgumentException(value.getClass().getName() + " (expected: " + type.javaName() + ")"));
        }
    }

    /**
     * Says whether values of this type can be objects of a subclass, so that {@link #expectNoSubclass} has something to
     * check.
     */
    static boolean hasSubclasses(MessageType type) {
        return type.kind() == MessageType.Kind.BEAN
                && !Modifier.isFinal(type.javaClass().getModifiers());
    }

    final MessageType type() {
        return type;
    }

    /** Returns the name of the field with that number as errors show it: {@code Greeting.name}. */
    final String fieldName(int number) {
        for (FieldType field : type.fields()) {
            if (field.number() == number) {
                return type.protoName() + "." + field.name();
            }
        }
        return type.protoName() + ", field " + number;
    }

    final boolean knows(int number) {
        return Arrays.binarySearch(numbers, number) >= 0;
    }
}
