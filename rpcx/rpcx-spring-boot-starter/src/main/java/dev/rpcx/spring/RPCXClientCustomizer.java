package dev.rpcx.spring;

import dev.rpcx.Client;

/**
 * Customizer of the client: a bean of this type changes the client before it is built, for example adds interceptors,
 * TLS, or a choice among instances.
 */
@FunctionalInterface
public interface RPCXClientCustomizer {
    /** Changes the builder, to which the settings of the properties have been applied. */
    void customize(Client.Builder builder);
}
