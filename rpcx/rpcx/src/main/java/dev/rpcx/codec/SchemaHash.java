package dev.rpcx.codec;

import dev.rpcx.internal.schema.EnumType;
import dev.rpcx.internal.schema.FieldType;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Scalar;
import dev.rpcx.internal.schema.Shape;
import dev.rpcx.internal.schema.WellKnown;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Computes an FNV-1a hash of the field numbers, labels and wire forms of message types, which determine the encoded
 * bytes. Names and Java classes are not included, because they can differ between the two sides of a call.
 */
final class SchemaHash {
    private long hash = 0xcbf29ce484222325L;
    /**
     * The message types that have been hashed so far, each with its index in the order of hashing. If a type occurs
     * again, only its index is hashed, because a type can contain itself.
     */
    private final Map<MessageType, Integer> met = new HashMap<>();

    static long of(List<MessageType> types) {
        SchemaHash hash = new SchemaHash();
        types.forEach(hash::shape);
        return hash.hash;
    }

    private void text(String text) {
        for (int i = 0; i < text.length(); i++) {
            hash = (hash ^ text.charAt(i)) * 0x100000001b3L;
        }
    }

    private void shape(Shape shape) {
        if (shape instanceof MessageType message) {
            Integer index = met.putIfAbsent(message, met.size());
            if (index != null) {
                text("@" + index);
                return;
            }
            text(message.kind() == MessageType.Kind.ONEOF ? "oneof{" : "{");
            List<FieldType> fields = new ArrayList<>(message.fields());
            fields.sort(Comparator.comparingInt(FieldType::number));
            fields.forEach(this::field);
            text("}");
        } else if (shape instanceof Scalar || shape instanceof WellKnown) {
            text(shape.protoName());
        } else if (shape instanceof EnumType type) {
            text("enum" + type.numbers().stream().sorted().toList());
        }
    }

    private void field(FieldType field) {
        text(";" + field.number()
                + switch (field.holder()) {
                    case PLAIN -> "";
                    case NULLABLE, OPTIONAL -> "?";
                    case LIST, SET -> "*";
                    case MAP -> "%";
                });
        Shape key = field.key();
        if (key != null) {
            shape(key);
        }
        shape(field.shape());
    }
}
