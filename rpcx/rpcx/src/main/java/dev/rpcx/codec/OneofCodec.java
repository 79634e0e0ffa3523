package dev.rpcx.codec;

import dev.rpcx.schema.MessageType;
import org.jspecify.annotations.Nullable;

/** A sealed type: the one case that a value is. */
final class OneofCodec extends MessageCodec {
    private final ReflectiveCodec.FieldsByNumber fields;
    private final Class<?>[] classes;

    OneofCodec(MessageType type, FieldCodec[] fields) {
        super(type);
        this.fields = new ReflectiveCodec.FieldsByNumber(fields);
        classes = new Class<?>[fields.length];
        for (int i = 0; i < fields.length; i++) {
            classes[i] = fields[i].type.javaClass();
        }
    }

    @Override
    public void write(Object value, Out out) {
        Class<?> c = value.getClass();
        for (int i = 0; i < classes.length; i++) {
            if (classes[i] == c || classes[i].isAssignableFrom(c)) {
                fields.at(i).write(out, value);
                return;
            }
        }
        // the unknown case: what it stood for is gone, and nothing is sent
    }

    @Override
    public Object read(In in) {
        @Nullable Object value = null;
        boolean unknown = false;
        for (int tag; (tag = in.tag()) != 0; ) {
            int i = fields.index(tag >>> 3);
            if (i >= 0 && fields.at(i).tag == tag) {
                value = fields.at(i).read(in, value);
            } else {
                in.skip(tag);
                unknown = true;
            }
        }
        if (value == null) {
            value = type().unknownCase();
        }
        if (value == null) {
            throw in.refused(
                    CodecException.Code.UNKNOWN_VALUE,
                    (unknown ? "a case that is not known here" : "no case is set")
                            + " (a record without components annotated @Unknown would stand for it)");
        }
        return value;
    }
}
