package dev.rpcx.examples.hello;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;

/**
 * Runs server and client in one {@code main}. In real life they are two programs that share nothing but the published
 * names.
 */
public final class HelloWorld {
    /**
     * Service, which is the server's side. Its names {@code greeter} and {@code hello} are published; the names of the
     * class and of the method stay hidden.
     */
    @RPCXServer("greeter")
    static class Greetings {
        @Method("hello")
        String greet(String name) {
            return "Hello " + name;
        }
    }

    /** Interface to the service, which is the client's side. */
    @RPCXClient(remoteServerName = "greeter", remoteServerAddress = "127.0.0.1", remoteServerDomain = 9000)
    interface Greeter {
        @Method("hello")
        String hello(String name);
    }

    private HelloWorld() {}

    public static void main(String[] args) {
        try (Server server = new Server(0, RegistryServer.registry(new Greetings())).start();
                Client client = Client.standard()) {
            Greeter greeter = client.create(Greeter.class, "127.0.0.1", server.port());
            System.out.println(greeter.hello("World"));
        }
    }
}
