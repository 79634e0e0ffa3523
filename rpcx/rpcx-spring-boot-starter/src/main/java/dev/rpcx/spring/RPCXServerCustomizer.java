package dev.rpcx.spring;

import dev.rpcx.Server;

/** A bean of this type changes the server before it is built: adds interceptors, TLS, limits. */
@FunctionalInterface
public interface RPCXServerCustomizer {
    /** Changes what the properties have set. */
    void customize(Server.Builder builder);
}
