package dev.parley.spi.json;

import dev.parley.spi.Contract;
import dev.parley.spi.Operation;
import dev.parley.spi.Operation.Kind;
import java.util.List;

/** Operations of the work {@code json}: one without a body either way, one with a document each way. */
public final class Json {
    public static final Operation<Nothing, Nothing> GET =
            new Operation<>("get", Kind.FETCH, Nothing.class, Nothing.class);
    public static final Operation<Order, Receipt> POST =
            new Operation<>("post", Kind.QUERY, Order.class, Receipt.class);

    public static final Contract CONTRACT = new Contract("json", List.of(GET, POST));

    private Json() {}
}
