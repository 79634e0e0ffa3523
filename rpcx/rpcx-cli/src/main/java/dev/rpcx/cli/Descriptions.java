package dev.rpcx.cli;

import static com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type.TYPE_BYTES;
import static com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type.TYPE_INT32;
import static com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type.TYPE_INT64;
import static com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type.TYPE_MESSAGE;
import static com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type.TYPE_SINT32;
import static com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type.TYPE_SINT64;
import static com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type.TYPE_STRING;

import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.OneofDescriptorProto;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.Descriptors.MethodDescriptor;
import com.google.protobuf.DurationProto;
import com.google.protobuf.EmptyProto;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.TimestampProto;
import dev.rpcx.internal.schema.DescribedService;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.schema.ProtoFile;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * What services and their messages look like, by published names. A server has sent it, or it was made of classes.
 *
 * @param files the {@code .proto} of each service
 * @param methods the methods of all services, each under its name as {@code service/method}
 * @param schemas members of the methods, under the same names, if the description was made of classes, so that they may
 *     differ from those of the server; empty if the server has sent the description
 */
record Descriptions(
        Map<String, FileDescriptor> files, Map<String, MethodDescriptor> methods, Map<String, MethodSchema> schemas) {
    static final Descriptions NONE = new Descriptions(Map.of(), Map.of(), Map.of());

    /** The file with RPCX's own messages, {@code rpcx/types.proto}, as far as it is about bytes. */
    static final FileDescriptor TYPES = file(
            ProtoFile.TYPES,
            "rpcx",
            List.of(TimestampProto.getDescriptor()),
            message("Decimal", field("unscaled", 1, TYPE_BYTES), field("scale", 2, TYPE_SINT32)),
            message("LocalDate", field("days", 1, TYPE_SINT64)),
            message("LocalDateTime", field("seconds", 1, TYPE_INT64), field("nanos", 2, TYPE_INT32)),
            message("ZonedDateTime", field("time", 1, ".google.protobuf.Timestamp"), field("zone", 2, TYPE_STRING)));

    /**
     * The file of Google's that a service imports for a time of day, as far as it is about bytes. This tool does
     * without the library that has the file, since that is larger than protobuf-java.
     */
    static final FileDescriptor TIME_OF_DAY = file(
            "google/type/timeofday.proto",
            "google.type",
            List.of(),
            message("TimeOfDay", numbers("hours", "minutes", "seconds", "nanos")));

    /** The file of Google's that a service imports for a date and time with an offset, as far as it is about bytes. */
    static final FileDescriptor DATE_TIME = file(
            "google/type/datetime.proto",
            "google.type",
            List.of(DurationProto.getDescriptor()),
            dateTime(),
            message("TimeZone", field("id", 1, TYPE_STRING), field("version", 2, TYPE_STRING)));

    /** The files that a service's file may import, by path. */
    private static final Map<String, FileDescriptor> IMPORTS = Stream.of(
                    DurationProto.getDescriptor(),
                    EmptyProto.getDescriptor(),
                    TimestampProto.getDescriptor(),
                    TIME_OF_DAY,
                    DATE_TIME,
                    TYPES)
            .collect(Collectors.toUnmodifiableMap(FileDescriptor::getName, file -> file));

    /**
     * Links the descriptions of services.
     *
     * @param schemas members of the methods that are to be compared with those of the server; empty to compare none
     * @throws IllegalStateException if a description cannot be read
     */
    static Descriptions of(Collection<DescribedService> services, Map<String, MethodSchema> schemas) {
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
        return new Descriptions(files, methods, schemas);
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

    private static FileDescriptor file(
            String path, String protoPackage, List<FileDescriptor> imported, DescriptorProto... messages) {
        FileDescriptorProto.Builder file = FileDescriptorProto.newBuilder()
                .setName(path)
                .setSyntax("proto3")
                .setPackage(protoPackage)
                .addAllMessageType(List.of(messages));
        imported.forEach(each -> file.addDependency(each.getName()));
        try {
            return FileDescriptor.buildFrom(file.build(), imported.toArray(FileDescriptor[]::new));
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

    /** Returns Google's message for a date and time, which has an offset or a time zone. */
    private static DescriptorProto dateTime() {
        return message("DateTime", numbers("year", "month", "day", "hours", "minutes", "seconds", "nanos")).toBuilder()
                .addField(field("utc_offset", 8, ".google.protobuf.Duration").toBuilder()
                        .setOneofIndex(0))
                .addField(field("time_zone", 9, ".google.type.TimeZone").toBuilder()
                        .setOneofIndex(0))
                .addOneofDecl(OneofDescriptorProto.newBuilder().setName("time_offset"))
                .build();
    }

    /** Returns fields of the type {@code int32}, numbered from 1. */
    private static FieldDescriptorProto[] numbers(String... names) {
        FieldDescriptorProto[] fields = new FieldDescriptorProto[names.length];
        for (int i = 0; i < names.length; i++) {
            fields[i] = field(names[i], i + 1, TYPE_INT32);
        }
        return fields;
    }

    private static FieldDescriptorProto field(String name, int number, FieldDescriptorProto.Type type) {
        return FieldDescriptorProto.newBuilder()
                .setName(name)
                .setNumber(number)
                .setType(type)
                .setLabel(FieldDescriptorProto.Label.LABEL_OPTIONAL)
                .build();
    }

    /** @param message full name of the message that the field holds, with a leading dot */
    private static FieldDescriptorProto field(String name, int number, String message) {
        return field(name, number, TYPE_MESSAGE).toBuilder()
                .setTypeName(message)
                .build();
    }

    /** Returns the method of this name, as {@code service/method}; null if it is not described. */
    @Nullable
    MethodDescriptor method(String name) {
        return methods.get(name);
    }

    /** Returns what is compared with the server for calls of the method of this name. */
    MethodSchema schema(String name) {
        return schemas.getOrDefault(name, MethodSchema.UNKNOWN);
    }
}
