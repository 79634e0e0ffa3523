package dev.rpcx.grpc;

import dev.rpcx.RegistryServer;
import dev.rpcx.Server;

/** A server for the conformance tests of others. It prints its port, and serves until its process is killed. */
final class ServedUntilKilled {
    private ServedUntilKilled() {}

    public static void main(String[] arguments) throws InterruptedException {
        Server server = Server.builder(RegistryServer.registry(new InteropService()))
                .host("127.0.0.1")
                .grpc(InteropService.PACKAGE)
                .reflection()
                .build()
                .start();
        System.out.println(server.port());
        Thread.currentThread().join();
    }
}
