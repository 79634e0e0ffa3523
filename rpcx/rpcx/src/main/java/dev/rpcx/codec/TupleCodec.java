package dev.rpcx.codec;

import dev.rpcx.internal.schema.MessageType;
import org.jspecify.annotations.Nullable;

/**
 * Writes and reads the parameters of a method, or a single value, as one message. The parameters are given as an array.
 * A single value becomes field 1 of the message.
 */
final class TupleCodec extends MessageCodec {
    /**
     * An object that stands for null, because a {@link MessageCodec} expects a value. The object is used only inside
     * this package.
     */
    static final Object NULL = new Object();

    private final ReflectiveCodec.FieldsByNumber fields;
    private final boolean single;
    private final int[] order;
    private final int[] positions;

    TupleCodec(MessageType type, FieldCodec[] fields) {
        super(type);
        this.fields = new ReflectiveCodec.FieldsByNumber(fields);
        order = type.inOrderOfNumbers();
        positions = type.positions().stream().mapToInt(i -> i).toArray();
        single = type.kind() == MessageType.Kind.WRAPPER;
    }

    @Override
    public void write(Object value, Out out) {
        if (single) {
            if (fields.size() == 1) {
                fields.at(0).write(out, value == NULL ? null : value);
            }
            return;
        }
        // java.lang.reflect.Proxy passes null, and not an empty array, for a method without parameters
        @Nullable Object[] values = value == NULL ? new Object[0] : (Object[]) value;
        if (values.length != type().arity()) {
            throw new IllegalArgumentException(values.length + " arguments (expected: " + type().arity() + ")");
        }
        for (int i : order) {
            fields.at(i).write(out, values[positions[i]]);
        }
    }

    @Override
    public Object read(In in) {
        @Nullable Object[] values = fields.read(in);
        if (!single) {
            if (values.length == type().arity()) {
                return values;
            }
            @Nullable Object[] arguments = new Object[type().arity()];
            for (int i = 0; i < values.length; i++) {
                arguments[positions[i]] = values[i];
            }
            return arguments;
        }
        Object value = values.length == 0 ? null : values[0];
        return value == null ? NULL : value;
    }
}
