package dev.rpcx.codec;

import dev.rpcx.internal.schema.FieldType;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Scalar;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Arrays;

/**
 * Writes and reads the fields of one message type. Public only because generated codecs, which are in other packages,
 * extend it.
 */
public abstract class MessageCodec {
    private final MessageType type;

    /**
     * Numbers of the message's fields in ascending order, for binary search. The search has to be fast: a message may
     * contain many unknown numbers.
     */
    private final int[] numbers;

    /**
     * Estimated memory in bytes of one object, without the objects that it refers to. A reference counts as four bytes.
     */
    final int shallowBytes;

    /**
     * Number of bytes that the length of the last message of this type took. As many are reserved for the length of the
     * next one. Written without synchronisation: after a race, the bytes of a message may have to be moved, which does
     * no harm.
     */
    int lengthWidth = 1;

    /** Index of this codec in its {@link Codecs}, which sets it before anybody uses the codec. */
    int number;

    /** Creates the codec of a message type. Called by generated codecs, which are in other packages. */
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
     * Returns the bytes of all non-static fields of a class and its superclasses. Each object has them, whether they
     * are sent or not.
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

    /** Reads the fields of the message up to its end, and returns the value. */
    public abstract Object read(In in);

    /**
     * Throws a {@link CodecException} if the value is an object of a subclass. The peer would read it as an object of
     * the superclass, without the fields of the subclass. Called for classes with accessors.
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
     * Returns whether a value of this type can be an object of a subclass. If not, {@link #expectNoSubclass} is not
     * needed.
     */
    static boolean hasSubclasses(MessageType type) {
        return type.kind() == MessageType.Kind.BEAN
                && !Modifier.isFinal(type.javaClass().getModifiers());
    }

    final MessageType type() {
        return type;
    }

    /** Returns the name of the field for errors, such as {@code Greeting.name}. */
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
