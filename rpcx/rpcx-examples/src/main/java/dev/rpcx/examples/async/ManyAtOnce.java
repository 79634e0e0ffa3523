package dev.rpcx.examples.async;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.math.BigDecimal;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;

/** Has three calls in flight at once on one connection, without a thread for each. */
public final class ManyAtOnce {
    /** Result of a call. A record is sent as it is. */
    record Quote(String product, BigDecimal price) {}

    @RPCXServer("prices")
    static class Prices {
        @Method("quote")
        Quote quote(String product) {
            return new Quote(product, new BigDecimal(product.length()).setScale(2));
        }
    }

    /** Interface to the service. A method that returns a future does not wait. */
    @RPCXClient(remoteServerName = "prices")
    interface PricesClient {
        @Method("quote")
        CompletableFuture<Quote> quote(String product);
    }

    private ManyAtOnce() {}

    public static void main(String[] args) {
        try (Server server = new Server(0, RegistryServer.registry(new Prices())).start();
                Client client = Client.standard()) {
            PricesClient prices = client.create(PricesClient.class, "127.0.0.1", server.port());
            List<CompletableFuture<Quote>> asked =
                    Stream.of("tea", "bread", "butter").map(prices::quote).toList();
            BigDecimal sum = asked.stream()
                    .map(CompletableFuture::join)
                    .map(Quote::price)
                    .reduce(BigDecimal.ZERO, BigDecimal::add);
            System.out.println("together " + sum);
        }
    }
}
