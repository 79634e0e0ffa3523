package dev.rpcx.codec;

import dev.rpcx.schema.FieldType;
import dev.rpcx.schema.MessageType;
import dev.rpcx.schema.Scalar;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Arrays;

/**
 * The fields of one message. Public only because generated classes, which live in the packages of the types they carry,
 * extend it.
 */
public abstract class MessageCodec {
    private final MessageType type;

    /** The numbers of its fields in their order: messages may bring many that it does not have. */
    private final int[] numbers;

    /** Memory of an object without what its references lead to. An estimate: references of four bytes. */
    final int shallowBytes;

    /**
     * Bytes that the length of the last such message took: the guess for the next. A race costs a move of bytes, no
     * more.
     */
    int lengthWidth = 1;

    /** Stands for this one among the codecs that it belongs to. {@link Codecs} sets it before anybody uses this one. */
    int number;

    /** For the generated codec of this message. */
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

    /** Each object has all fields of its class, whether they are components or not. */
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

    /** Writes the fields, without a length. */
    public abstract void write(Object value, Out out);

    /** Reads fields until the input's end. */
    public abstract Object read(In in);

    /** Refuses a subclass of a class with accessors: it would arrive as another, without what it has beside those. */
    protected final void expectNoSubclass(Object value) {
        if (value.getClass() != type.javaClass()) {
            throw new CodecException(
                    CodecException.Code.REFUSED,
                    type.protoName() + ": an object of a subclass would arrive as its superclass (expected: one of the"
                            + " class itself, or a sealed interface that has both as cases)",
                    new IllegalArgumentException(value.getClass().getName() + " (expected: " + type.javaName() + ")"));
        }
    }

    /** Whether {@link #expectNoSubclass} has something to look at. */
    static boolean hasSubclasses(MessageType type) {
        return type.kind() == MessageType.Kind.BEAN
                && !Modifier.isFinal(type.javaClass().getModifiers());
    }

    final MessageType type() {
        return type;
    }

    /** The field of that number, for errors: {@code Greeting.name}. */
    final String describe(int number) {
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
