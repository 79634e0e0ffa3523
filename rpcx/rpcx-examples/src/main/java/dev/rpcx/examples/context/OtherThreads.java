package dev.rpcx.examples.context;

import dev.rpcx.CallContext;
import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;

/** Shows that the time, the metadata and the caller of a call go on with its tasks on other threads. */
public final class OtherThreads {
    /** Serves all calls: each task runs in the context of the thread that gives it to the executor. */
    private static final Executor CARRYING = CallContext.wrap(ForkJoinPool.commonPool());

    @RPCXServer("clock")
    static class Clock {
        /** Says how long the caller still waits, on a thread of a pool. */
        @Method("minutesLeft")
        CompletableFuture<Long> minutesLeft() {
            return CompletableFuture.supplyAsync(OtherThreads::minutes, CARRYING);
        }
    }

    @RPCXClient(remoteServerName = "clock")
    interface ClockClient {
        @Method(value = "minutesLeft", timeoutMillis = 1_800_000)
        long minutesLeft();
    }

    private static long minutes() {
        CallContext call = CallContext.current().orElseThrow();
        return TimeUnit.NANOSECONDS.toMinutes(call.remainingNanos());
    }

    private OtherThreads() {}

    public static void main(String[] args) {
        try (Server server = new Server(0, RegistryServer.registry(new Clock())).start();
                Client client = Client.standard()) {
            ClockClient clock = client.create(ClockClient.class, "127.0.0.1", server.port());
            System.out.println(clock.minutesLeft() + " minutes are left");
        }
    }
}
