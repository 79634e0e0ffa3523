package dev.rpcx.codec;

import dev.rpcx.internal.schema.MessageType;
import org.jspecify.annotations.Nullable;

/**
 * Writes and reads a value of a sealed type. The message has one field for each case of the type, except the case
 * annotated {@code @Unknown}. A value is written as the field of its case.
 */
final class OneofCodec extends MessageCodec {
    private final ReflectiveCodec.FieldsByNumber fields;
    private final Class<?>[] classes;

    /**
     * The class of the value that stands for an unknown case of the sealed type; null if there is no such value. The
     * value is written as an empty message.
     */
    private final @Nullable Class<?> unknown;

    OneofCodec(MessageType type, FieldCodec[] fields) {
        super(type);
        this.fields = new ReflectiveCodec.FieldsByNumber(fields);
        classes = new Class<?>[fields.length];
        for (int i = 0; i < fields.length; i++) {
            classes[i] = fields[i].type.javaClass();
        }
        Object unknownCase = type.unknownCase();
        unknown = unknownCase == null ? null : unknownCase.getClass();
    }

    @Override
    public void write(Object value, Out out) {
        Class<?> c = value.getClass();
        for (int i = 0; i < classes.length; i++) {
            // The class has to be exactly that of the case, because a case may be a subclass of another case. The codec
            // of the superclass would refuse an object of the subclass.
            if (classes[i] == c) {
                fields.at(i).write(out, value);
                return;
            }
        }
        if (c != unknown) {
            throw new CodecException(
                    CodecException.Code.REFUSED,
                    type().protoName() + ": an object whose class is none of the cases (expected: one of exactly such a"
                            + " class; a subclass needs a case of its own)",
                    new IllegalArgumentException(c.getName() + " (expected: a case of " + type().javaName() + ")"));
        }
    }

    @Override
    public Object read(In in) {
        @Nullable Object value = null;
        boolean hasUnknown = false;
        for (int tag; (tag = in.tag()) != 0; ) {
            int i = fields.index(tag >>> 3);
            if (i >= 0 && fields.at(i).tag == tag) {
                value = fields.at(i).read(in, value);
            } else {
                in.skip(tag);
                hasUnknown = true;
            }
        }
        if (value == null) {
            value = type().unknownCase();
        }
        if (value == null) {
            throw in.refused(
                    CodecException.Code.UNKNOWN_VALUE,
                    (hasUnknown ? "a case that is not known here" : "no case is set")
                            + " (a record without components annotated @Unknown would stand for it)");
        }
        return value;
    }
}
