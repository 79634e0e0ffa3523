package dev.rpcx.examples.plain;

import dev.rpcx.Method;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;

/**
 * Runs a service as a program: {@code GreeterServer [PORT]}. Ctrl-C ends it, after calls under way have had up to 5 s
 * to finish.
 */
public final class GreeterServer {
    @RPCXServer("greeter")
    static class Greetings {
        @Method("hello")
        String greet(String name) {
            return "Hello " + name;
        }
    }

    private GreeterServer() {}

    public static void main(String[] args) throws InterruptedException {
        int port = args.length > 0 ? Integer.parseInt(args[0]) : 9000;
        Server server = new Server(port, RegistryServer.registry(new Greetings())).start();
        Runtime.getRuntime().addShutdownHook(new Thread(server::close, "shutdown"));
        System.out.println("serving on " + server.port());
        server.awaitStop();
    }
}
