package dev.rpcx.spring;

import dev.rpcx.Server;

/**
 * Customizer of the server: a bean of this type changes the server before it is built, for example adds interceptors,
 * TLS, or limits.
 */
@FunctionalInterface
public interface RPCXServerCustomizer {
    /** Changes the builder, to which the settings of the properties have been applied. */
    void customize(Server.Builder builder);
}
