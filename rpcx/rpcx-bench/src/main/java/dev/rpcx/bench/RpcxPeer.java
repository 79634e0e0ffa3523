package dev.rpcx.bench;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Peer that calls with RPCX in its default set-up, in which handlers run on virtual threads. {@code rpcx-inline} runs
 * them on the event loop, and {@code rpcx-pool} on the server's pool, both by annotation.
 */
record RpcxPeer(String name, Object service) implements Peer {
    static RpcxPeer named(String name) {
        return switch (name) {
            case "rpcx" -> new RpcxPeer(name, new Echo());
            case "rpcx-inline" -> new RpcxPeer(name, new InlineEcho());
            case "rpcx-pool" -> new RpcxPeer(name, new PoolEcho());
            default -> throw new IllegalArgumentException(name);
        };
    }

    /** Client interface of the echo service. */
    @RPCXClient(remoteServerName = "echo")
    interface EchoClient {
        @Method
        String hello(String text);

        @Method
        List<Row> records(List<Row> rows);

        @Method("hello")
        CompletableFuture<String> sendHello(String text);
    }

    @RPCXServer("echo")
    static class Echo {
        @Method
        String hello(String text) {
            return text;
        }

        @Method
        List<Row> records(List<Row> rows) {
            return rows;
        }
    }

    @RPCXServer("echo")
    @RunOn(RunOn.Place.EVENT_LOOP)
    static class InlineEcho {
        @Method
        String hello(String text) {
            return text;
        }

        @Method
        List<Row> records(List<Row> rows) {
            return rows;
        }
    }

    @RPCXServer("echo")
    @RunOn(RunOn.Place.POOL)
    static class PoolEcho {
        @Method
        String hello(String text) {
            return text;
        }

        @Method
        List<Row> records(List<Row> rows) {
            return rows;
        }
    }

    @Override
    public AutoCloseable serve(int port) {
        return new Server(port, RegistryServer.registry(service)).start();
    }

    @Override
    public Caller connect(int port) {
        Client client = Client.standard();
        EchoClient echo = client.create(EchoClient.class, "127.0.0.1", port);
        return new Caller() {
            @Override
            public String hello(String text) {
                return echo.hello(text);
            }

            @Override
            public void hello(String text, BiConsumer<@Nullable String, @Nullable Throwable> callback) {
                echo.sendHello(text).whenComplete(callback);
            }

            @Override
            public List<Row> records(List<Row> rows) {
                return echo.records(rows);
            }

            @Override
            public void close() {
                client.close();
            }
        };
    }
}
