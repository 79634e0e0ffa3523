package dev.rpcx.examples.schema;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.schema.Field;
import java.util.Optional;

/** Calls a server whose order has a component that the client does not know yet. */
public final class TwoVersions {
    /** Order as the client of the last release has it. */
    record Order(@Field(1) String id) {}

    /** Order as the server of this release has it. */
    record OrderWithNote(@Field(1) String id, @Field(2) Optional<String> note) {}

    @RPCXServer("orders")
    static class Orders {
        @Method("place")
        String place(OrderWithNote order) {
            return order.id() + ", note: " + order.note().orElse("none");
        }
    }

    @RPCXClient(remoteServerName = "orders")
    interface OldClient {
        @Method("place")
        String place(Order order);
    }

    private TwoVersions() {}

    public static void main(String[] args) {
        try (Server server = new Server(0, RegistryServer.registry(new Orders())).start();
                Client client = Client.standard()) {
            OldClient orders = client.create(OldClient.class, "127.0.0.1", server.port());
            System.out.println(orders.place(new Order("A7")));
        }
    }
}
