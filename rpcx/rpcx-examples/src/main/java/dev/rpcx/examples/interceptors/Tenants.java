package dev.rpcx.examples.interceptors;

import dev.rpcx.CallContext;
import dev.rpcx.Client;
import dev.rpcx.Interceptor;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import org.jspecify.annotations.Nullable;

/** Sends the name of a tenant with calls. The server refuses calls without it, and says where its answer is from. */
public final class Tenants {
    @RPCXServer("invoices")
    static class Invoices {
        @Method("count")
        int count() {
            CallContext call = CallContext.current().orElseThrow();
            call.reply("source", "cache");
            return "acme".equals(call.metadata().get("tenant")) ? 3 : 0;
        }
    }

    @RPCXClient(remoteServerName = "invoices")
    interface InvoicesClient {
        @Method("count")
        int count();
    }

    static @Nullable Object requireTenant(Interceptor.Invocation call, Interceptor.Next next) throws Throwable {
        if (call.metadata().get("tenant") == null) {
            throw RPCXException.refused(RPCXException.Code.INVALID, "no tenant (expected: the metadata entry tenant)");
        }
        return next.proceed(call);
    }

    private Tenants() {}

    public static void main(String[] args) {
        try (Server server = Server.builder(RegistryServer.registry(new Invoices()))
                        .interceptor(Tenants::requireTenant)
                        .build()
                        .start();
                Client client = Client.builder()
                        .interceptor((call, next) -> next.proceed(call.with("tenant", "acme")))
                        .build()) {
            InvoicesClient invoices = client.create(InvoicesClient.class, "127.0.0.1", server.port());
            int count = CallContext.onReply(
                    reply -> System.out.println("from the " + reply.get("source")), invoices::count);
            System.out.println(count + " invoices");
        }
    }
}
