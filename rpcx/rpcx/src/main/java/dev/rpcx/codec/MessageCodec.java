package dev.rpcx.codec;

import dev.rpcx.internal.schema.FieldType;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Scalar;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Arrays;

/**
 * Codec of one message type, which writes and reads the fields of a message. The class is public only because generated
 * classes extend it, and those are in the packages of the types that they encode.
 */
public abstract class MessageCodec {
    private final MessageType type;

    /**
     * Numbers of the message's fields in ascending order, for binary search. The search has to be fast, because a
     * message that is read may contain many numbers that the message type does not have.
     */
    private final int[] numbers;

    /**
     * Estimated memory in bytes of one object, without the objects that it refers to. A reference counts as four bytes.
     */
    final int shallowBytes;

    /**
     * Number of bytes in which the length of the last message of this type was written. The same number of bytes is
     * reserved for the length of the next such message. Threads change it without synchronisation. If they race, the
     * bytes of a message may have to be moved, and nothing worse happens.
     */
    int lengthWidth = 1;

    /** Index of this codec among all codecs of its {@link Codecs}, which sets it before anybody uses this codec. */
    int number;

    /**
     * Creates the codec of this message type. The constructor is protected because generated codecs, which are in other
     * packages, call it.
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
     * Returns the bytes of all non-static fields of a class and its superclasses. Fields that are not sent count too,
     * since each object has them.
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
     * the superclass, without what the subclass has in addition. This method is called for classes with accessors.
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

    /** Returns the name of the field with this number as errors show it, such as {@code Greeting.name}. */
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
