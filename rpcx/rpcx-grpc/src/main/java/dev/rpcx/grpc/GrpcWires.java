package dev.rpcx.grpc;

import dev.rpcx.internal.server.GrpcProvider;
import dev.rpcx.internal.server.ServerMethod;
import dev.rpcx.internal.server.TranslatedWire;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Makes the wire of gRPC for a server. The JDK's service loader makes an object of this class. */
public final class GrpcWires implements GrpcProvider {
    @Override
    public TranslatedWire wire(String protoPackage, @Nullable String tokenEntry, List<ServerMethod> methods) {
        return GrpcWire.of(protoPackage, tokenEntry, methods);
    }
}
