package dev.rpcx.examples.feign;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.util.Map;

/** Calls with a time, a retry, a header, a circuit breaker and a fallback, as a client of OpenFeign does. */
public final class Catalog {
    @RPCXServer("catalog")
    static class Articles {
        private final Map<String, Long> cents = Map.of("tea", 250L);

        @Method("price")
        long price(String article) {
            Long price = cents.get(article);
            if (price == null) {
                throw new RPCXException(RPCXException.Code.NOT_FOUND, "no article " + article);
            }
            return price;
        }
    }

    @RPCXClient(remoteServerName = "catalog")
    interface CatalogClient {
        @Method(value = "price", timeoutMillis = 2_000, idempotent = true)
        long price(String article);
    }

    private Catalog() {}

    /** Is what a fallback of Feign is: code of the caller, which sees why the call failed. */
    private static String price(CatalogClient catalog, String article) {
        try {
            return article + " costs " + catalog.price(article);
        } catch (RPCXException e) {
            return e.code() == RPCXException.Code.NOT_FOUND ? "no " + article : article + " costs 300, we think";
        }
    }

    public static void main(String[] args) {
        Server server = new Server(0, RegistryServer.registry(new Articles())).start();
        try (Client client = Client.builder()
                .circuitBreaker(0.5)
                .interceptor((call, next) -> next.proceed(call.with("correlation-id", "42")))
                .build()) {
            CatalogClient catalog = client.create(CatalogClient.class, "127.0.0.1", server.port());
            System.out.println(price(catalog, "tea"));
            System.out.println(price(catalog, "salt"));
            server.stop();
            System.out.println(price(catalog, "tea"));
        }
    }
}
