package dev.rpcx.internal.schema;

import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.Descriptors.ServiceDescriptor;
import dev.rpcx.schema.SchemaException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The {@code .proto} of all services of a server, that of gRPC's health checks, and the files that they import, in the
 * form in which the reflection of gRPC sends them. Needs protobuf-java.
 *
 * @param services full names of the services, such as {@code com.acme.Greeter}
 * @param files encoded files, under the name of each file: this file, and then all files that it imports
 * @param symbols name of the file that has a service, a method, a message or an enum, under the full name of that
 */
public record DescribedFiles(List<String> services, Map<String, List<byte[]>> files, Map<String, String> symbols) {
    /**
     * Describes services of the user, and gRPC's health checks.
     *
     * @param protoPackage package of the file; empty for none
     * @param services methods of each service, under its published name
     * @throws SchemaException if protobuf-java is not on the class path, or if two services, two methods of a service,
     *     or two fields of a message, have the same name in a {@code .proto}
     */
    public static DescribedFiles of(String protoPackage, Map<String, List<ProtoFile.Rpc>> services) {
        DescribedService.expectProtobuf();
        ProtoFile proto = new ProtoFile(protoPackage).reserve(List.copyOf(services.keySet()));
        services.forEach(proto::service);
        List<String> names = new ArrayList<>();
        Map<String, List<byte[]>> files = new HashMap<>();
        Map<String, String> symbols = new HashMap<>();
        for (FileDescriptor own : List.of(linked(proto.descriptor()), ProtoImports.HEALTH)) {
            own.getServices().forEach(service -> names.add(service.getFullName()));
            for (FileDescriptor file : needed(own)) {
                files.put(
                        file.getName(),
                        needed(file).stream()
                                .map(each -> each.toProto().toByteArray())
                                .toList());
                addSymbols(file, symbols);
            }
        }
        return new DescribedFiles(names, files, symbols);
    }

    private static FileDescriptor linked(FileDescriptorProto proto) {
        List<FileDescriptor> imported = new ArrayList<>();
        for (String path : proto.getDependencyList()) {
            FileDescriptor file = ProtoImports.find(path);
            if (file != null) {
                imported.add(file);
            }
        }
        try {
            return FileDescriptor.buildFrom(proto, imported.toArray(FileDescriptor[]::new));
        } catch (DescriptorValidationException e) {
            throw new SchemaException("the .proto of the services is not valid: " + e.getMessage());
        }
    }

    /** Returns a file, and then all files that it imports. */
    private static List<FileDescriptor> needed(FileDescriptor file) {
        Map<String, FileDescriptor> needed = new LinkedHashMap<>();
        addNeeded(file, needed);
        return List.copyOf(needed.values());
    }

    private static void addNeeded(FileDescriptor file, Map<String, FileDescriptor> to) {
        if (to.putIfAbsent(file.getName(), file) == null) {
            file.getDependencies().forEach(imported -> addNeeded(imported, to));
        }
    }

    private static void addSymbols(FileDescriptor file, Map<String, String> to) {
        for (ServiceDescriptor service : file.getServices()) {
            to.put(service.getFullName(), file.getName());
            service.getMethods().forEach(method -> to.put(method.getFullName(), file.getName()));
        }
        file.getMessageTypes().forEach(type -> addSymbols(type, to));
        file.getEnumTypes().forEach(type -> to.put(type.getFullName(), file.getName()));
    }

    private static void addSymbols(Descriptor type, Map<String, String> to) {
        to.put(type.getFullName(), type.getFile().getName());
        type.getNestedTypes().forEach(nested -> addSymbols(nested, to));
        type.getEnumTypes()
                .forEach(nested -> to.put(nested.getFullName(), nested.getFile().getName()));
    }
}
