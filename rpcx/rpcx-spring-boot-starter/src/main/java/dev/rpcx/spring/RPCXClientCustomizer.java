package dev.rpcx.spring;

import dev.rpcx.Client;

/** A bean of this type changes the client before it is built: adds interceptors, TLS, a choice among instances. */
@FunctionalInterface
public interface RPCXClientCustomizer {
    /** Changes what the properties have set. */
    void customize(Client.Builder builder);
}
