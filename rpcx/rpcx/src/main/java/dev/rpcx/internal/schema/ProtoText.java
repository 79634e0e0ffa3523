package dev.rpcx.internal.schema;

import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.EnumDescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.MethodDescriptorProto;
import com.google.protobuf.DescriptorProtos.ServiceDescriptorProto;
import java.util.Locale;

/** Writes the text of a {@code .proto} file from the file's descriptor. {@link #toString} returns the text. */
final class ProtoText {
    private final StringBuilder text = new StringBuilder();
    private final String prefix;

    ProtoText(FileDescriptorProto file) {
        prefix = file.getPackage().isEmpty() ? "." : '.' + file.getPackage() + '.';
        text.append("// Exported by RPCX from Java types; the types are the source.\nsyntax = \"proto3\";\n");
        if (!file.getPackage().isEmpty()) {
            text.append("\npackage ").append(file.getPackage()).append(";\n");
        }
        if (file.getDependencyCount() > 0) {
            text.append('\n');
            file.getDependencyList().stream()
                    .sorted()
                    .forEach(path -> text.append("import \"").append(path).append("\";\n"));
        }
        text.append("\noption java_multiple_files = true;\n");
        file.getServiceList().forEach(this::service);
        file.getMessageTypeList().forEach(message -> {
            text.append('\n');
            message(message, "");
        });
        file.getEnumTypeList().forEach(this::enumType);
    }

    private String name(String typeName) {
        if (typeName.startsWith(prefix)) {
            return typeName.substring(prefix.length());
        }
        // protoc looks for the beginning of a name in the package of this file before it looks elsewhere. For example,
        // in the package `com.acme.rpcx` protoc would read `rpcx.Decimal` as `com.acme.rpcx.Decimal`. The full name
        // with its leading dot prevents this.
        boolean ambiguous = prefix.contains(typeName.substring(0, typeName.indexOf('.', 1) + 1));
        return ambiguous ? typeName : typeName.substring(1);
    }

    /**
     * Returns the name by which this service refers to a type. If a method of the service has the same name as the
     * type, the result is the full name, since protoc would find the method first.
     */
    private String name(String typeName, ServiceDescriptorProto service) {
        String name = name(typeName);
        return service.getMethodList().stream().anyMatch(m -> m.getName().equals(name)) ? typeName : name;
    }

    private void service(ServiceDescriptorProto service) {
        text.append("\nservice ").append(service.getName()).append(" {\n");
        for (MethodDescriptorProto method : service.getMethodList()) {
            text.append("  rpc ").append(method.getName()).append('(');
            text.append(method.getClientStreaming() ? "stream " : "").append(name(method.getInputType(), service));
            text.append(") returns (").append(method.getServerStreaming() ? "stream " : "");
            text.append(name(method.getOutputType(), service)).append(");\n");
        }
        text.append("}\n");
    }

    private void message(DescriptorProto message, String indent) {
        text.append(indent).append("message ").append(message.getName()).append(" {\n");
        String inner = indent + "  ";
        reserved(message, inner);
        for (DescriptorProto nested : message.getNestedTypeList()) {
            if (!nested.getOptions().getMapEntry()) {
                message(nested, inner);
            }
        }
        boolean oneof = false;
        for (FieldDescriptorProto field : message.getFieldList()) {
            boolean inOneof = field.hasOneofIndex() && !field.getProto3Optional();
            if (inOneof && !oneof) {
                text.append(inner)
                        .append("oneof ")
                        .append(message.getOneofDecl(0).getName())
                        .append(" {\n");
                oneof = true;
            }
            text.append(inner).append(inOneof ? "  " : "");
            text.append(label(field)).append(type(field, message)).append(' ').append(field.getName());
            text.append(" = ").append(field.getNumber()).append(";\n");
        }
        text.append(oneof ? inner + "}\n" : "").append(indent).append("}\n");
    }

    private void reserved(DescriptorProto message, String indent) {
        message.getReservedRangeList()
                .forEach(range -> text.append(indent)
                        .append("reserved ")
                        .append(range.getStart())
                        .append(";\n"));
        message.getReservedNameList()
                .forEach(name ->
                        text.append(indent).append("reserved \"").append(name).append("\";\n"));
    }

    private static String label(FieldDescriptorProto field) {
        if (field.getProto3Optional()) {
            return "optional ";
        }
        return field.getLabel() == FieldDescriptorProto.Label.LABEL_REPEATED ? "repeated " : "";
    }

    private String type(FieldDescriptorProto field, DescriptorProto message) {
        if (!field.hasTypeName()) {
            return field.getType().name().substring("TYPE_".length()).toLowerCase(Locale.ROOT);
        }
        String name = name(field.getTypeName());
        for (DescriptorProto nested : message.getNestedTypeList()) {
            if (name.equals(message.getName() + '.' + nested.getName())) {
                return nested.getOptions().getMapEntry()
                        ? "map<" + type(nested.getField(0), message) + ", " + type(nested.getField(1), message) + ">"
                        : nested.getName();
            }
            if (name.equals(nested.getName())) {
                return field.getTypeName();
            }
        }
        return name;
    }

    private void enumType(EnumDescriptorProto type) {
        text.append("\nenum ").append(type.getName()).append(" {\n");
        type.getReservedRangeList()
                .forEach(range ->
                        text.append("  reserved ").append(range.getStart()).append(";\n"));
        type.getValueList()
                .forEach(value -> text.append("  ")
                        .append(value.getName())
                        .append(" = ")
                        .append(value.getNumber())
                        .append(";\n"));
        text.append("}\n");
    }

    @Override
    public String toString() {
        // the descriptor marks a map as `repeated`, but the text must not
        return text.toString().replace("repeated map<", "map<");
    }
}
