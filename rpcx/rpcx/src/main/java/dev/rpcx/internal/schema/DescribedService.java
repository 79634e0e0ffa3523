package dev.rpcx.internal.schema;

import dev.rpcx.schema.Field;
import dev.rpcx.schema.SchemaException;
import java.util.List;

/**
 * Description of a service for callers that have none of its classes. It is also a message: a server that describes its
 * services sends it. Source: rpcx/spec/schema.md, "Reflection".
 *
 * @param name published name of the service
 * @param methods published names of the methods, in the order in which the service of the file has its methods, which
 *     have other names there
 * @param file the {@code .proto} of the service, as an encoded {@code google.protobuf.FileDescriptorProto} with one
 *     service
 */
public record DescribedService(
        @Field(1) String name,
        @Field(2) List<String> methods,
        @Field(3) byte[] file) {
    public DescribedService {
        methods = List.copyOf(methods);
    }

    /**
     * Describes a service.
     *
     * @param name published name of the service
     * @throws SchemaException if protobuf-java is not on the class path, or if two methods, or two fields of one
     *     message, have the same name in a {@code .proto}
     */
    public static DescribedService of(String name, List<ProtoFile.Rpc> rpcs) {
        expectProtobuf();
        return new DescribedService(
                name,
                rpcs.stream().map(ProtoFile.Rpc::name).toList(),
                new ProtoFile("").service(name, rpcs).bytes());
    }

    /**
     * Throws a {@link SchemaException} if protobuf-java is not on the class path. RPCX does not depend on
     * protobuf-java, and only the export of a {@code .proto} needs that library.
     */
    public static void expectProtobuf() {
        try {
            Class.forName("com.google.protobuf.DescriptorProtos", false, DescribedService.class.getClassLoader());
        } catch (ClassNotFoundException e) {
            throw new SchemaException("the export of a .proto needs protobuf-java, which is not on the class path"
                    + " (expected: the dependency com.google.protobuf:protobuf-java)");
        }
    }
}
