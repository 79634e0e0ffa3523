package dev.rpcx.examples.plain;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;

/** Calls the service of {@code GreeterServer} from a program of its own: {@code GreeterClient [HOST [PORT [NAME]]]}. */
public final class GreeterClient {
    @RPCXClient(remoteServerName = "greeter")
    interface Greeter {
        @Method("hello")
        String hello(String name);
    }

    private GreeterClient() {}

    public static void main(String[] args) {
        String host = args.length > 0 ? args[0] : "127.0.0.1";
        int port = args.length > 1 ? Integer.parseInt(args[1]) : 9000;
        String name = args.length > 2 ? args[2] : "World";
        try (Client client = Client.standard()) {
            System.out.println(client.create(Greeter.class, host, port).hello(name));
        }
    }
}
