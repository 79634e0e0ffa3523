package dev.rpcx.codec;

import dev.rpcx.internal.schema.FieldType;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Scalar;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Arrays;

/**
 * Writes and reads the fields of one message type. The class is public only because generated codecs, which are in
 * other packages, extend it.
 */
public abstract class MessageCodec {
    private final MessageType type;

    /**
     * The numbers of the message's fields in ascending order, for binary search. The search has to be fast, because a
     * message can contain many unknown numbers.
     */
    private final int[] numbers;

    /**
     * The estimated memory in bytes of one object, without the objects to which it refers. A reference counts as four
     * bytes. The number is 0 for a sealed type, since the object belongs to a case of the sealed type, and the codec of
     * that case counts the object.
     */
    final int shallowBytes;

    /**
     * The number of bytes that the length of the previous message of this type took. {@link Out} reserves as many bytes
     * for the length of the next message. Any thread that writes a message reads and writes this field without
     * synchronisation, because a wrong number only makes {@link Out} move the bytes of a message.
     */
    int lengthWidth = 1;

    /**
     * The index of this codec among all codecs of its {@link Codecs} object. The thread that creates the codec sets the
     * index, under the lock of that object, before any other thread gets the codec.
     */
    int number;

    /** Creates the codec of a message type. Generated codecs, which are in other packages, call this constructor. */
    protected MessageCodec(MessageType type) {
        this.type = type;
        numbers = type.fields().stream().mapToInt(FieldType::number).sorted().toArray();
        shallowBytes = shallowBytes(type);
    }

    private static int shallowBytes(MessageType type) {
        if (type.kind() == MessageType.Kind.ONEOF) {
            return 0;
        }
        int bytes = 12 + (isClass(type) ? fieldBytes(type) : componentBytes(type));
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
     * Returns the memory in bytes of all non-static fields of a class and its superclasses. Fields that are not sent
     * count too, because each object has them.
     */
    private static int fieldBytes(MessageType type) {
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

    /** Writes the fields of {@code value} as a message, without the message's length before them. */
    public abstract void write(Object value, Out out);

    /** Reads the fields of a message up to the end of the message, and returns the Java object. */
    public abstract Object read(In in);

    /**
     * Throws a {@link CodecException} if the value is an object of a subclass. The receiver would read an object of the
     * superclass, without the fields of the subclass. Codecs of non-final classes with accessors call this method.
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
     * Returns whether a type is a class that has accessors and can have subclasses. If not, the codec does not need to
     * call {@link #expectNoSubclass}.
     */
    static boolean hasSubclasses(MessageType type) {
        return isClass(type) && !Modifier.isFinal(type.javaClass().getModifiers());
    }

    private static boolean isClass(MessageType type) {
        return type.kind() == MessageType.Kind.BEAN || type.kind() == MessageType.Kind.CONSTRUCTED;
    }

    final MessageType type() {
        return type;
    }

    /** Returns the name of a field for error messages, such as {@code Greeting.name}. */
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
