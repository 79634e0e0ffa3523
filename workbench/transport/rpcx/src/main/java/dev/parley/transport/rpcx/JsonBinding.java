package dev.parley.transport.rpcx;

import static dev.parley.transport.rpcx.Binding.call;

import dev.parley.spi.Handler;
import dev.parley.spi.json.Json;
import dev.parley.spi.json.Nothing;
import dev.parley.spi.json.Order;
import dev.parley.spi.json.Receipt;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** The contract {@code json}. */
final class JsonBinding {
    static final Binding<Client> BINDING = Binding.of(
            Json.CONTRACT,
            Client.class,
            Service::new,
            List.of(call(Json.GET, Client::get, Client::sendGet), call(Json.POST, Client::post, Client::sendPost)));

    private JsonBinding() {}

    /** As a caller sees it, blocking and not. */
    @RPCXClient(remoteServerName = "json")
    interface Client {
        @Method
        Nothing get(Nothing nothing);

        @Method
        Receipt post(Order order);

        @Method("get")
        CompletableFuture<Nothing> sendGet(Nothing nothing);

        @Method("post")
        CompletableFuture<Receipt> sendPost(Order order);
    }

    /** As it is served. */
    @RPCXServer("json")
    static final class Service {
        private final Handler handler;

        Service(Handler handler) {
            this.handler = handler;
        }

        @Method
        Nothing get(Nothing nothing) {
            return Binding.answer(handler, Json.GET, nothing);
        }

        @Method
        Receipt post(Order order) {
            return Binding.answer(handler, Json.POST, order);
        }
    }
}
