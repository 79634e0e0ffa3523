package dev.rpcx.spring;

import dev.rpcx.Endpoints;
import org.jspecify.annotations.Nullable;

/**
 * Discovery of services that no property names: a bean of this type says where they are, for example from a registry,
 * as {@code ZooKeeperEndpoints::of} does with a path. If there are several beans of this type, the {@code @Primary} one
 * is asked; if none of them is primary, the application does not start.
 */
@FunctionalInterface
public interface RPCXDiscovery {
    /**
     * Returns where a service is. Returns null for a service that is not known here; the address in the annotation is
     * then used.
     */
    @Nullable
    Endpoints find(String service);
}
