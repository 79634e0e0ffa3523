package shop;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.util.List;

/** A service and its caller. The output says whether the call went well, and names the modules of both sides. */
public class Main {
    record Item(String name, int count) {}

    record Order(String customer, List<Item> items) {}

    @RPCXClient(remoteServerName = "shop")
    interface Shop {
        String place(Order order);
    }

    @RPCXServer("shop")
    static class ShopService {
        @Method
        String place(Order order) {
            return order.customer() + " orders " + order.items();
        }
    }

    public static void main(String[] args) throws Exception {
        try (Server server = Server.builder(RegistryServer.registry(new ShopService()))
                        .port(0)
                        .build()
                        .start();
                Client client = Client.builder().build()) {
            Shop shop = client.create(Shop.class, "127.0.0.1", server.port());
            System.out.println(shop.place(new Order("Ann", List.of(new Item("tea", 2)))) + "; modules: "
                    + Main.class.getModule().getName() + ", " + Server.class.getModule().getName());
        }
    }
}
