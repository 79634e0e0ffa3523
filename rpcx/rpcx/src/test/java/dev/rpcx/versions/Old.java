package dev.rpcx.versions;

import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.schema.Field;
import dev.rpcx.schema.Unknown;
import java.util.List;

/** The first release of a service. {@link New} is the second. */
final class Old {
    enum Colour {
        @Field(1)
        RED,
        @Field(2)
        GREEN,
        @Unknown
        OTHER
    }

    sealed interface Payment permits Cash, Unheard {}

    record Cash(@Field(1) long cents) implements Payment {}

    @Unknown
    record Unheard() implements Payment {}

    record Order(
            @Field(1) String id,
            @Field(2) Colour colour,
            @Field(3) int count,
            @Field(4) List<String> notes,
            @Field(5) Payment payment) {}

    @RPCXServer("shop")
    static final class Shop {
        @Method
        int version() {
            return 1;
        }

        @Method
        Order echo(Order order) {
            return order;
        }

        @Method
        String describe(Order order) {
            return order.id() + " " + order.colour() + " " + order.count() + " " + order.notes() + " "
                    + order.payment();
        }
    }

    @RPCXClient(remoteServerName = "shop")
    interface ShopClient {
        int version();

        Order echo(Order order);

        String describe(Order order);
    }

    private Old() {}

    /** Checks what a client of this release has to see with a server of either release. */
    static void check(ShopClient shop) {
        int version = shop.version();
        Order order = new Order("a1", Colour.GREEN, -7, List.of("x", "y"), new Cash(250));
        Peer.expect(
                "describe",
                shop.describe(order),
                version == 1 ? "a1 GREEN -7 [x, y] Cash[cents=250]" : "a1 GREEN -7 null NORMAL Cash[cents=250, tip=0]");
        Order echoed = shop.echo(order);
        // the second release has no notes; its answers have a colour and a payment that are unknown to the first
        // release
        Peer.expect("echo", echoed, version == 1 ? order : new Order("a1", Colour.OTHER, -7, List.of(), new Unheard()));
    }
}
