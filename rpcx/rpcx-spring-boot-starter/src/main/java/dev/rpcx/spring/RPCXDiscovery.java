package dev.rpcx.spring;

import dev.rpcx.Endpoints;
import org.jspecify.annotations.Nullable;

/**
 * A bean of this type says where services are that no property names: a registry, as {@code ZooKeeperEndpoints::of} with a path. Of several
 * beans the {@code @Primary} one is asked; without one the application does not start.
 */
@FunctionalInterface
public interface RPCXDiscovery {
    /** Null for a service that it does not know; then the annotation's address holds. */
    @Nullable
    Endpoints find(String service);
}
