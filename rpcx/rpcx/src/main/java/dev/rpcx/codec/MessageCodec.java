package dev.rpcx.codec;

import dev.rpcx.schema.FieldType;
import dev.rpcx.schema.MessageType;

/** The fields of one message. Public only because generated classes, which live in the packages of the types they carry, extend it. */
public abstract class MessageCodec {
    private final MessageType type;

    /** Bytes that the length of the last such message took: the guess for the next. A race costs a move of bytes, no more. */
    int lengthWidth = 1;

    /** For the generated codec of this message. */
    protected MessageCodec(MessageType type) {
        this.type = type;
    }

    /** Writes the fields, without a length. */
    public abstract void write(Object value, Out out);

    /** Reads fields until the input's end. */
    public abstract Object read(In in);

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
        for (FieldType field : type.fields()) {
            if (field.number() == number) {
                return true;
            }
        }
        return false;
    }
}
