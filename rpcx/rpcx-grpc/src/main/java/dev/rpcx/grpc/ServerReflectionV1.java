package dev.rpcx.grpc;

import dev.rpcx.Method;
import dev.rpcx.RPCXServer;
import dev.rpcx.internal.schema.DescribedFiles;
import java.util.concurrent.Flow;

/** Version v1 of gRPC's reflection. */
@RPCXServer(ServerReflectionV1.NAME)
final class ServerReflectionV1 {
    static final String NAME = "grpc.reflection.v1.ServerReflection";

    private final ServerReflection reflection;

    ServerReflectionV1(DescribedFiles described) {
        reflection = new ServerReflection(described);
    }

    @Method("ServerReflectionInfo")
    Flow.Publisher<ServerReflection.Response> info(Flow.Publisher<ServerReflection.Request> requests) {
        return reflection.answers(requests);
    }
}
