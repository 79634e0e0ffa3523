package dev.rpcx.grpc;

import dev.rpcx.Server;

/** A server for the conformance tests of others. It prints its port, and serves until its process is killed. */
final class ServedUntilKilled {
    private ServedUntilKilled() {}

    public static void main(String[] arguments) throws InterruptedException {
        Served served = new Served(Server.Builder::reflection);
        System.out.println(served.port());
        Thread.currentThread().join();
    }
}
