package dev.rpcx.grpc;

import dev.rpcx.internal.schema.DescribedFiles;
import dev.rpcx.internal.server.GrpcProvider;
import dev.rpcx.internal.server.ServerMethod;
import dev.rpcx.internal.server.TranslatedWire;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Makes the wire of gRPC, and the services that gRPC defines, for a server. The JDK's service loader makes an object of
 * this class.
 */
public final class GrpcWires implements GrpcProvider {
    @Override
    public TranslatedWire wire(String protoPackage, @Nullable String tokenEntry, List<ServerMethod> methods) {
        return GrpcWire.of(protoPackage, tokenEntry, methods);
    }

    @Override
    public List<Object> services(List<String> services, @Nullable DescribedFiles files) {
        Health health = new Health(services);
        return files == null
                ? List.of(health)
                : List.of(health, new ServerReflectionV1(files), new ServerReflectionV1Alpha(files));
    }
}
