package dev.rpcx.cli;

import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.MethodDescriptor;
import com.google.protobuf.Descriptors.OneofDescriptor;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Text of what a method takes and returns, in which each field has the name that it has in JSON: what is printed of a
 * method says which JSON {@code rpcx call} takes for it. Types have the names that {@code rpcx describe} prints.
 */
final class Signature {
    private Signature() {}

    static String of(MethodDescriptor method) {
        return "(" + request(method) + ") returns (" + reply(method) + ")";
    }

    static String request(MethodDescriptor method) {
        return sent(method.isClientStreaming(), method.getInputType());
    }

    static String reply(MethodDescriptor method) {
        return sent(method.isServerStreaming(), method.getOutputType());
    }

    private static String sent(boolean isStream, Descriptor type) {
        return (isStream ? "stream " : "") + fields(type);
    }

    /** Returns the fields of a message. Those of which only one can be set have a vertical bar between them. */
    private static String fields(Descriptor type) {
        List<String> fields = new ArrayList<>();
        OneofDescriptor before = null;
        for (FieldDescriptor field : type.getFields()) {
            OneofDescriptor oneof = field.getRealContainingOneof();
            if (oneof != null && oneof == before) {
                int last = fields.size() - 1;
                fields.set(last, fields.get(last) + " | " + field(field));
            } else {
                fields.add(field(field));
            }
            before = oneof;
        }
        return String.join(", ", fields);
    }

    private static String field(FieldDescriptor field) {
        String label = "";
        if (field.isRepeated() && !field.isMapField()) {
            label = "repeated ";
        } else if (field.hasPresence()
                && field.getJavaType() != FieldDescriptor.JavaType.MESSAGE
                && field.getRealContainingOneof() == null) {
            label = "optional ";
        }
        return label + type(field) + " " + field.getJsonName();
    }

    private static String type(FieldDescriptor field) {
        if (field.isMapField()) {
            Descriptor entry = field.getMessageType();
            return "map<" + type(entry.findFieldByNumber(1)) + ", " + type(entry.findFieldByNumber(2)) + ">";
        }
        return switch (field.getJavaType()) {
            case MESSAGE -> field.getMessageType().getFullName();
            case ENUM -> field.getEnumType().getFullName();
            default -> field.getType().name().toLowerCase(Locale.ROOT);
        };
    }
}
