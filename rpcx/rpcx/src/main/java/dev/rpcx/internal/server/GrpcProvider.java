package dev.rpcx.internal.server;

import dev.rpcx.internal.schema.DescribedFiles;
import java.util.List;
import java.util.ServiceLoader;
import org.jspecify.annotations.Nullable;

/**
 * Makes the wire of gRPC for a server. The library {@code rpcx-grpc} implements this interface, and the JDK's service
 * loader finds it, so that RPCX itself does not depend on an implementation of HTTP/2.
 */
public interface GrpcProvider {
    /**
     * Makes the wire of one server.
     *
     * @param protoPackage package of the {@code .proto} that describes the server's services; empty for none
     * @param tokenEntry name of the metadata entry that carries a caller's token; null if the server requires none
     * @throws IllegalArgumentException if two methods have the same name in gRPC
     */
    TranslatedWire wire(String protoPackage, @Nullable String tokenEntry, List<ServerMethod> methods);

    /**
     * Makes the services that gRPC defines, and that a server has beside its own.
     *
     * @param services full names of the server's own services in gRPC
     * @param files files that describe these services; null if the server describes nothing
     * @return objects with {@code @RPCXServer}
     */
    List<Object> services(List<String> services, @Nullable DescribedFiles files);

    /**
     * Finds the implementation on the class path or the module path.
     *
     * @throws IllegalStateException if there is none
     */
    static GrpcProvider find() {
        return ServiceLoader.load(GrpcProvider.class, ServiceIndex.loader())
                .findFirst()
                .orElseThrow(() -> new IllegalStateException(
                        "grpc: nothing that speaks gRPC is on the class path (expected: the library rpcx-grpc)"));
    }
}
