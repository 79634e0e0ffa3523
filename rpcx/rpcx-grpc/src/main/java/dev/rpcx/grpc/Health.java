package dev.rpcx.grpc;

import dev.rpcx.Method;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.schema.Field;
import java.util.List;
import java.util.Set;

/**
 * The health checks of gRPC. A server that answers is healthy, and so are all its services: a server that stops takes
 * no new connections. The method {@code Watch} is not there, which clients take as "not supported" and do not call
 * again. Source: grpc/health/v1/health.proto.
 */
@RPCXServer(Health.NAME)
final class Health {
    static final String NAME = "grpc.health.v1.Health";

    /** Constant of {@code ServingStatus}. */
    private static final int SERVING = 1;

    private final Set<String> services;

    /** @param services full names of the server's services */
    Health(List<String> services) {
        this.services = Set.copyOf(services);
    }

    /** @param service full name of a service; empty for the server itself */
    record Request(@Field(1) String service) {}

    record Reply(@Field(1) int status) {}

    @Method("Check")
    Reply check(Request request) {
        if (!request.service().isEmpty() && !services.contains(request.service())) {
            throw new RPCXException(RPCXException.Code.NOT_FOUND, "no such service");
        }
        return new Reply(SERVING);
    }
}
