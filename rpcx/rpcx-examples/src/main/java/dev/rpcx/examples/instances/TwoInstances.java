package dev.rpcx.examples.instances;

import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.util.Set;
import java.util.TreeSet;

/** Calls two instances of one service, and goes on while one of them stops. */
public final class TwoInstances {
    @RPCXServer("whoami")
    record Instance(String instance) {
        @Method("name")
        String name() {
            return instance;
        }
    }

    @RPCXClient(remoteServerName = "whoami")
    interface WhoAmI {
        @Method(value = "name", idempotent = true)
        String name();
    }

    private TwoInstances() {}

    private static Server started(String name) {
        return new Server(0, RegistryServer.registry(new Instance(name))).start();
    }

    public static void main(String[] args) {
        try (Server blue = started("blue");
                Server green = started("green");
                Client client = Client.standard()) {
            Endpoints instances =
                    Endpoints.of(new Endpoint("127.0.0.1", blue.port()), new Endpoint("127.0.0.1", green.port()));
            WhoAmI service = client.create(WhoAmI.class, instances);
            Set<String> names = new TreeSet<>();
            while (names.size() < 2) {
                names.add(service.name());
            }
            System.out.println("calls go to " + names);
            blue.stop();
            System.out.println("after the stop of blue to " + service.name());
        }
    }
}
