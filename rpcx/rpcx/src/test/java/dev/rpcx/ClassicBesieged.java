package dev.rpcx;

import java.time.Duration;

/**
 * Runs a server of both wires, which is attacked, in a process of its own. The process answers each line of its input
 * with the number of bytes on its heap.
 */
public final class ClassicBesieged {
    private ClassicBesieged() {}

    @RPCXServer("besieged")
    static final class Service {
        @Method
        String hello(String name) {
            return name;
        }
    }

    @RPCXClient(remoteServerName = "besieged")
    interface Calls {
        String hello(String name);
    }

    public static void main(String[] args) throws Exception {
        Server server = Server.builder(RegistryServer.registry(new Service()))
                .host("127.0.0.1")
                .classic(true)
                .build()
                .start();
        System.out.println("open " + server.port());
        while (System.in.read() >= 0) {
            if (System.in.available() == 0) {
                System.gc();
                Runtime heap = Runtime.getRuntime();
                System.out.println(heap.totalMemory() - heap.freeMemory());
            }
        }
        server.stop(Duration.ofMillis(100));
    }
}
