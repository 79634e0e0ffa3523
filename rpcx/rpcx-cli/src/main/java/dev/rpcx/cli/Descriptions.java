package dev.rpcx.cli;

import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.Descriptors.MethodDescriptor;
import com.google.protobuf.DurationProto;
import com.google.protobuf.EmptyProto;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.TimestampProto;
import dev.rpcx.internal.schema.DescribedService;
import dev.rpcx.internal.schema.ProtoFile;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What services and their messages look like, by published names. A server has sent it, or it was made of classes.
 *
 * @param files the {@code .proto} of each service
 * @param methods the methods of all services, each under its name as {@code service/method}
 */
record Descriptions(Map<String, FileDescriptor> files, Map<String, MethodDescriptor> methods) {
    static final Descriptions NONE = new Descriptions(Map.of(), Map.of());

    /** The file with RPCX's own messages, {@code rpcx/types.proto}, as far as it is about bytes. */
    static final FileDescriptor TYPES = types();

    /** The files that a service's file may import, by path. */
    private static final Map<String, FileDescriptor> IMPORTS = Map.of(
            "google/protobuf/duration.proto",
            DurationProto.getDescriptor(),
            "google/protobuf/empty.proto",
            EmptyProto.getDescriptor(),
            "google/protobuf/timestamp.proto",
            TimestampProto.getDescriptor(),
            ProtoFile.TYPES,
            TYPES);

    /**
     * Links the descriptions of services.
     *
     * @throws IllegalStateException if a description cannot be read
     */
    static Descriptions of(Collection<DescribedService> services) {
        Map<String, FileDescriptor> files = new LinkedHashMap<>();
        Map<String, MethodDescriptor> methods = new LinkedHashMap<>();
        for (DescribedService service : services) {
            FileDescriptor file = link(service);
            List<MethodDescriptor> described = file.getServices().get(0).getMethods();
            files.put(service.name(), file);
            for (int i = 0; i < described.size(); i++) {
                methods.put(service.name() + "/" + service.methods().get(i), described.get(i));
            }
        }
        return new Descriptions(files, methods);
    }

    private static FileDescriptor link(DescribedService service) {
        String what = "the description of service " + Printable.clipped(service.name());
        try {
            FileDescriptorProto proto = FileDescriptorProto.parseFrom(service.file());
            List<FileDescriptor> imported = new ArrayList<>();
            for (String path : proto.getDependencyList()) {
                FileDescriptor file = IMPORTS.get(path);
                if (file == null) {
                    throw new IllegalStateException(what + " imports " + Printable.clipped(path) + " (expected: one of "
                            + IMPORTS.keySet().stream().sorted().toList() + ")");
                }
                imported.add(file);
            }
            FileDescriptor file = FileDescriptor.buildFrom(proto, imported.toArray(FileDescriptor[]::new));
            if (file.getServices().size() != 1
                    || file.getServices().get(0).getMethods().size()
                            != service.methods().size()) {
                throw new IllegalStateException(what + " does not have its "
                        + service.methods().size() + " methods (expected: one service with each of them)");
            }
            return file;
        } catch (InvalidProtocolBufferException | DescriptorValidationException e) {
            throw new IllegalStateException(
                    what + " cannot be read: " + e.getMessage() + " (expected: a descriptor of Protobuf)", e);
        }
    }

    private static FileDescriptor types() {
        try {
            return FileDescriptor.buildFrom(
                    FileDescriptorProto.newBuilder()
                            .setName(ProtoFile.TYPES)
                            .setSyntax("proto3")
                            .setPackage("rpcx")
                            .addMessageType(message(
                                    "Decimal",
                                    field("unscaled", 1, FieldDescriptorProto.Type.TYPE_BYTES),
                                    field("scale", 2, FieldDescriptorProto.Type.TYPE_SINT32)))
                            .addMessageType(
                                    message("LocalDate", field("days", 1, FieldDescriptorProto.Type.TYPE_SINT64)))
                            .addMessageType(message(
                                    "LocalDateTime",
                                    field("seconds", 1, FieldDescriptorProto.Type.TYPE_INT64),
                                    field("nanos", 2, FieldDescriptorProto.Type.TYPE_INT32)))
                            .build(),
                    new FileDescriptor[0]);
        } catch (DescriptorValidationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private static DescriptorProto message(String name, FieldDescriptorProto... fields) {
        return DescriptorProto.newBuilder()
                .setName(name)
                .addAllField(List.of(fields))
                .build();
    }

    private static FieldDescriptorProto field(String name, int number, FieldDescriptorProto.Type type) {
        return FieldDescriptorProto.newBuilder()
                .setName(name)
                .setNumber(number)
                .setType(type)
                .setLabel(FieldDescriptorProto.Label.LABEL_OPTIONAL)
                .build();
    }

    /** Returns the method of this name, as {@code service/method}; null if it is not described. */
    @Nullable
    MethodDescriptor method(String name) {
        return methods.get(name);
    }
}
