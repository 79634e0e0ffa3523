package dev.rpcx.examples.dubbo;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;

/** Has one interface, which the service implements and the client calls. It would stand in a jar of both. */
public final class SharedInterface {
    @RPCXClient(remoteServerName = "greetings")
    interface GreetingService {
        @Method("sayHello")
        String sayHello(String name);
    }

    @RPCXServer("greetings")
    static class Greetings implements GreetingService {
        @Method("sayHello")
        @Override
        public String sayHello(String name) {
            return "Hello " + name;
        }
    }

    private SharedInterface() {}

    public static void main(String[] args) {
        try (Server server = new Server(0, RegistryServer.registry(new Greetings())).start();
                Client client = Client.standard()) {
            GreetingService greetings = client.create(GreetingService.class, "127.0.0.1", server.port());
            System.out.println(greetings.sayHello("Dubbo"));
        }
    }
}
