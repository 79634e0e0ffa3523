package dev.rpcx.examples.timeouts;

import dev.rpcx.CallContext;
import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;

/** Gives calls less time than their handlers need, and cancels a call. */
public final class Timeouts {
    @RPCXServer("reports")
    static class Reports {
        private final CountDownLatch begun = new CountDownLatch(1);
        private final CountDownLatch interrupted = new CountDownLatch(1);

        @Method("yearly")
        String yearly() throws InterruptedException {
            Thread.sleep(60_000); // the end of the call interrupts this thread
            return "the report";
        }

        @Method("monthly")
        String monthly() throws InterruptedException {
            begun.countDown();
            try {
                Thread.sleep(60_000);
                return "the report";
            } finally {
                interrupted.countDown();
            }
        }
    }

    @RPCXClient(remoteServerName = "reports")
    interface ReportsClient {
        @Method(value = "yearly", timeoutMillis = 200)
        String yearly();

        @Method("monthly")
        CompletableFuture<String> monthly();
    }

    private Timeouts() {}

    public static void main(String[] args) throws InterruptedException {
        Reports service = new Reports();
        try (Server server = new Server(0, RegistryServer.registry(service)).start();
                Client client =
                        Client.builder().callTimeout(Duration.ofSeconds(30)).build()) {
            ReportsClient reports = client.create(ReportsClient.class, "127.0.0.1", server.port());
            try {
                reports.yearly();
            } catch (RPCXException e) {
                System.out.println("200 ms of the method: " + e.code());
            }
            try {
                CallContext.within(Duration.ofMillis(100), reports::yearly);
            } catch (RPCXException e) {
                System.out.println("100 ms of the caller: " + e.code());
            }
            CompletableFuture<String> monthly = reports.monthly();
            service.begun.await();
            monthly.cancel(true);
            service.interrupted.await();
            System.out.println("the cancel has interrupted the handler");
        }
    }
}
