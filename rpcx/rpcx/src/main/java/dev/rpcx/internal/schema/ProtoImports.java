package dev.rpcx.internal.schema;

import static com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type.TYPE_BYTES;
import static com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type.TYPE_ENUM;
import static com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type.TYPE_INT32;
import static com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type.TYPE_INT64;
import static com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type.TYPE_MESSAGE;
import static com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type.TYPE_SINT32;
import static com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type.TYPE_SINT64;
import static com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type.TYPE_STRING;

import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.EnumDescriptorProto;
import com.google.protobuf.DescriptorProtos.EnumValueDescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.MethodDescriptorProto;
import com.google.protobuf.DescriptorProtos.OneofDescriptorProto;
import com.google.protobuf.DescriptorProtos.ServiceDescriptorProto;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DurationProto;
import com.google.protobuf.EmptyProto;
import com.google.protobuf.TimestampProto;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The files that a {@code .proto} of {@link ProtoFile} may import, and the one of the service by which gRPC asks for a
 * server's health, as descriptors.
 */
public final class ProtoImports {
    /** The file with RPCX's own messages, {@code rpcx/types.proto}, as far as it is about bytes. */
    public static final FileDescriptor TYPES = file(
            ProtoFile.TYPES,
            "rpcx",
            List.of(TimestampProto.getDescriptor()),
            message("Decimal", field("unscaled", 1, TYPE_BYTES), field("scale", 2, TYPE_SINT32)),
            message("LocalDate", field("days", 1, TYPE_SINT64)),
            message("LocalDateTime", field("seconds", 1, TYPE_INT64), field("nanos", 2, TYPE_INT32)),
            message("ZonedDateTime", field("time", 1, ".google.protobuf.Timestamp"), field("zone", 2, TYPE_STRING)));

    /**
     * The file of Google's that a service imports for a time of day, as far as it is about bytes. RPCX does
     * without the library that has the file, since that is larger than protobuf-java.
     */
    public static final FileDescriptor TIME_OF_DAY = file(
            "google/type/timeofday.proto",
            "google.type",
            List.of(),
            message("TimeOfDay", numbers("hours", "minutes", "seconds", "nanos")));

    /** The file of Google's that a service imports for a date and time with an offset, as far as it is about bytes. */
    public static final FileDescriptor DATE_TIME = file(
            "google/type/datetime.proto",
            "google.type",
            List.of(DurationProto.getDescriptor()),
            dateTime(),
            message("TimeZone", field("id", 1, TYPE_STRING), field("version", 2, TYPE_STRING)));

    /** The file of gRPC's health checks, with the one method that a server of RPCX has. */
    static final FileDescriptor HEALTH = health();

    /** The files that a service's file may import, by path. */
    private static final Map<String, FileDescriptor> IMPORTS = Stream.of(
                    DurationProto.getDescriptor(),
                    EmptyProto.getDescriptor(),
                    TimestampProto.getDescriptor(),
                    TIME_OF_DAY,
                    DATE_TIME,
                    TYPES)
            .collect(Collectors.toUnmodifiableMap(FileDescriptor::getName, file -> file));

    private ProtoImports() {}

    /** Returns the file with this path; null if no {@code .proto} of RPCX imports it. */
    public static @Nullable FileDescriptor find(String path) {
        return IMPORTS.get(path);
    }

    /** Returns the paths of all files that may be imported, sorted. */
    public static List<String> names() {
        return IMPORTS.keySet().stream().sorted().toList();
    }

    private static FileDescriptor file(
            String path, String protoPackage, List<FileDescriptor> imported, DescriptorProto... messages) {
        FileDescriptorProto.Builder file = proto(path, protoPackage, messages);
        imported.forEach(each -> file.addDependency(each.getName()));
        return linked(file, imported);
    }

    private static FileDescriptorProto.Builder proto(String path, String protoPackage, DescriptorProto... messages) {
        return FileDescriptorProto.newBuilder()
                .setName(path)
                .setSyntax("proto3")
                .setPackage(protoPackage)
                .addAllMessageType(List.of(messages));
    }

    private static FileDescriptor linked(FileDescriptorProto.Builder file, List<FileDescriptor> imported) {
        try {
            return FileDescriptor.buildFrom(file.build(), imported.toArray(FileDescriptor[]::new));
        } catch (DescriptorValidationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /** Source: grpc/health/v1/health.proto. */
    private static FileDescriptor health() {
        EnumDescriptorProto.Builder status = EnumDescriptorProto.newBuilder().setName("ServingStatus");
        List<String> constants = List.of("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN");
        for (int i = 0; i < constants.size(); i++) {
            status.addValue(EnumValueDescriptorProto.newBuilder()
                    .setName(constants.get(i))
                    .setNumber(i));
        }
        FieldDescriptorProto value = field("status", 1, TYPE_ENUM).toBuilder()
                .setTypeName(".grpc.health.v1.HealthCheckResponse.ServingStatus")
                .build();
        FileDescriptorProto.Builder file = proto(
                "grpc/health/v1/health.proto",
                "grpc.health.v1",
                message("HealthCheckRequest", field("service", 1, TYPE_STRING)),
                message("HealthCheckResponse", value).toBuilder()
                        .addEnumType(status)
                        .build());
        file.addService(ServiceDescriptorProto.newBuilder()
                .setName("Health")
                .addMethod(MethodDescriptorProto.newBuilder()
                        .setName("Check")
                        .setInputType(".grpc.health.v1.HealthCheckRequest")
                        .setOutputType(".grpc.health.v1.HealthCheckResponse")));
        return linked(file, List.of());
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
}
