package dev.rpcx.examples.operating;

import dev.rpcx.CallLog;
import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;

/** Stops a server while a call is under way. The call ends well. */
public final class Stopping {
    @RPCXServer("kitchen")
    static class Kitchen {
        private final CountDownLatch begun = new CountDownLatch(1);

        @Method("cook")
        String cook(String dish) throws InterruptedException {
            begun.countDown();
            Thread.sleep(500);
            return dish + " is ready";
        }
    }

    @RPCXClient(remoteServerName = "kitchen")
    interface KitchenClient {
        @Method("cook")
        CompletableFuture<String> cook(String dish);
    }

    private Stopping() {}

    public static void main(String[] args) throws InterruptedException {
        Kitchen kitchen = new Kitchen();
        Server server = Server.builder(RegistryServer.registry(kitchen))
                .maxRunning(500)
                .maxConnections(2_000)
                .maxMessageBytes(256 * 1024)
                .interceptor(CallLog.ofServer().slowerThan(Duration.ofMillis(200)))
                .build()
                .start();
        try (Client client = Client.standard()) {
            CompletableFuture<String> soup = client.create(KitchenClient.class, "127.0.0.1", server.port())
                    .cook("soup");
            kitchen.begun.await();
            server.stop(Duration.ofSeconds(20)); // in real life within Runtime.addShutdownHook
            System.out.println(soup.join());
        }
    }
}
