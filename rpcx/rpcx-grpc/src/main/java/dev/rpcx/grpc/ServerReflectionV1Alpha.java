package dev.rpcx.grpc;

import dev.rpcx.Method;
import dev.rpcx.RPCXServer;
import dev.rpcx.internal.schema.DescribedFiles;
import java.util.concurrent.Flow;

/** Version v1alpha of gRPC's reflection. Older tools ask for it. */
@RPCXServer(ServerReflectionV1Alpha.NAME)
final class ServerReflectionV1Alpha {
    static final String NAME = "grpc.reflection.v1alpha.ServerReflection";

    private final ServerReflection reflection;

    ServerReflectionV1Alpha(DescribedFiles described) {
        reflection = new ServerReflection(described);
    }

    @Method("ServerReflectionInfo")
    Flow.Publisher<ServerReflection.Response> info(Flow.Publisher<ServerReflection.Request> requests) {
        return reflection.answers(requests);
    }
}
