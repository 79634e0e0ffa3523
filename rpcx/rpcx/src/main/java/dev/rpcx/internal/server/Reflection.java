package dev.rpcx.internal.server;

import dev.rpcx.Method;
import dev.rpcx.RPCXServer;
import dev.rpcx.internal.schema.DescribedService;
import java.util.List;

/**
 * Service by which a server describes its services to tools that have none of their classes. A server publishes it only
 * if its builder says so, and not itself among the services that it describes.
 */
@RPCXServer("rpcx.reflection")
public final class Reflection {
    private final List<DescribedService> services;

    public Reflection(List<DescribedService> services) {
        this.services = List.copyOf(services);
    }

    @Method
    List<DescribedService> services() {
        return services;
    }
}
