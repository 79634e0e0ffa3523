package dev.rpcx.cli;

import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.Descriptors.MethodDescriptor;
import com.google.protobuf.InvalidProtocolBufferException;
import dev.rpcx.internal.schema.DescribedService;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.schema.ProtoImports;
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
 * @param schemas members of the methods, under the same names, if the description was made of classes, so that they may
 *     differ from those of the server; empty if the server has sent the description
 */
record Descriptions(
        Map<String, FileDescriptor> files, Map<String, MethodDescriptor> methods, Map<String, MethodSchema> schemas) {
    static final Descriptions NONE = new Descriptions(Map.of(), Map.of(), Map.of());

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
                FileDescriptor file = ProtoImports.find(path);
                if (file == null) {
                    throw new IllegalStateException(what + " imports " + Printable.clipped(path) + " (expected: one of "
                            + ProtoImports.names() + ")");
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
