package dev.rpcx.versions;

import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.schema.Field;
import dev.rpcx.schema.Unknown;
import java.time.Instant;

/**
 * The second release of the service in {@link Old}. One field is removed, two are added, and one has a wider type. A
 * constant, a case, a component and a method are added too.
 */
final class New {
    enum Colour {
        @Field(1)
        RED,
        @Field(2)
        GREEN,
        @Field(3)
        BLUE,
        @Unknown
        OTHER
    }

    enum Priority {
        @Unknown
        NORMAL,
        @Field(1)
        HIGH
    }

    sealed interface Payment permits Cash, Unheard, Card {}

    record Cash(@Field(1) long cents, @Field(2) int tip) implements Payment {}

    @Unknown
    record Unheard() implements Payment {}

    record Card(@Field(1) String number) implements Payment {}

    record Order(
            @Field(6) Instant placed,
            @Field(7) Priority priority,
            @Field(1) String id,
            @Field(2) Colour colour,
            @Field(3) long count,
            @Field(5) Payment payment) {}

    @RPCXServer("shop")
    static final class Shop {
        @Method
        int version() {
            return 2;
        }

        /**
         * Returns the order. For an order of the first release it returns one with values that only this release has.
         */
        @Method
        Order echo(Order order) {
            return order.placed() == null
                    ? new Order(Instant.EPOCH, Priority.HIGH, order.id(), Colour.BLUE, order.count(), new Card("4711"))
                    : order;
        }

        @Method
        String describe(Order order) {
            return order.id() + " " + order.colour() + " " + order.count() + " " + order.placed() + " "
                    + order.priority() + " " + order.payment();
        }

        @Method
        String added() {
            return "new";
        }
    }

    @RPCXClient(remoteServerName = "shop")
    interface ShopClient {
        int version();

        Order echo(Order order);

        String describe(Order order);

        String added();
    }

    private New() {}

    /** Checks what a client of this release has to see with a server of either release. */
    static void check(ShopClient shop) {
        int version = shop.version();
        Instant placed = Instant.parse("2026-11-21T10:15:30.123456789Z");
        Order order = new Order(placed, Priority.HIGH, "b2", Colour.BLUE, 12, new Card("4711"));
        Peer.expect(
                "describe",
                shop.describe(order),
                version == 1 ? "b2 OTHER 12 [] Unheard[]" : "b2 BLUE 12 " + placed + " HIGH Card[number=4711]");
        Order plain = new Order(null, Priority.NORMAL, "c3", Colour.RED, 3, new Cash(5, 1));
        if (version == 1) {
            Peer.expect(
                    "echo", shop.echo(plain), new Order(null, Priority.NORMAL, "c3", Colour.RED, 3, new Cash(5, 0)));
            try {
                Peer.expect("added", shop.added(), "a refusal");
            } catch (RPCXException e) {
                Peer.expect("added", e.code() + " " + e.executed(), "NOT_FOUND NOT_EXECUTED");
            }
        } else {
            Peer.expect("echo", shop.echo(order), order);
            Peer.expect("added", shop.added(), "new");
        }
    }
}
