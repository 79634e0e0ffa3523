package dev.parley.work.json;

import dev.parley.model.BadInput;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.json.Order;
import dev.parley.spi.json.Receipt;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** Documents of an exact size, the rules they obey, and the answer to one. */
final class Orders {
    private static final int VARIANTS = 16;
    private static final int MAX_BYTES = 1_000_000;

    private static final int FRAME_BYTES = "{'id':'00000000','customer':'customer-0000','lines':[],'note':''}".length();
    /** One line and the comma before it. */
    private static final int LINE_BYTES = ",{'sku':'sku-000000','quantity':1,'price':1000}".length();

    static final int MIN_BYTES = FRAME_BYTES + LINE_BYTES - 1;

    private Orders() {}

    /** Orders that each take {@code bytes} as JSON without white space, as does the answer to each. */
    static List<Order> ofBytes(int bytes, long seed) {
        if (bytes < MIN_BYTES || bytes > MAX_BYTES) {
            throw new BadInput("message", "json:" + bytes, "json:" + MIN_BYTES + " to json:" + MAX_BYTES);
        }
        SplittableRandom random = new SplittableRandom(seed);
        List<Order> orders = new ArrayList<>(VARIANTS);
        for (int variant = 0; variant < VARIANTS; variant++) {
            orders.add(order(variant, bytes, random));
        }
        return List.copyOf(orders);
    }

    private static Order order(int variant, int bytes, SplittableRandom random) {
        // lines take three quarters of the room, the note the rest
        int count = Math.max(1, (bytes - FRAME_BYTES) * 3 / 4 / LINE_BYTES);
        List<Order.Line> lines = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            // 1000 to 9990 cents in all: price and total have four digits each, so that order and receipt are of one
            // size
            lines.add(new Order.Line(
                    "sku-%06d".formatted(random.nextInt(1_000_000)), random.nextInt(1, 6), random.nextInt(1000, 1999)));
        }
        int left = bytes - FRAME_BYTES - (count * LINE_BYTES - 1);
        StringBuilder note = new StringBuilder(left);
        for (int i = 0; i < left; i++) {
            note.append(i % 7 == 6 ? ' ' : (char) random.nextInt('a', 'z' + 1));
        }
        return new Order(
                "%08d".formatted(variant), "customer-%04d".formatted(random.nextInt(10_000)), lines, note.toString());
    }

    /** @throws CallException {@link Code#INVALID} with the first rule that is broken */
    static void check(Order order) {
        if (order.id().isEmpty() || order.id().length() > 36) {
            throw invalid("id", "'" + order.id() + "'", "1 to 36 characters");
        }
        if (order.lines().isEmpty()) {
            throw invalid("lines", "none", "at least one");
        }
        for (Order.Line line : order.lines()) {
            if (line.sku().isEmpty()) {
                throw invalid("sku", "''", "not empty");
            }
            if (line.quantity() < 1 || line.quantity() > 1000) {
                throw invalid("quantity of " + line.sku(), line.quantity(), "1 to 1000");
            }
            if (line.price() < 0 || line.price() > 1_000_000) {
                throw invalid("price of " + line.sku(), line.price(), "0 to 1000000 cents");
            }
        }
    }

    private static CallException invalid(String what, Object value, String expected) {
        return new CallException(Code.INVALID, what + ": " + value + " (expected: " + expected + ")");
    }

    static Receipt receipt(Order order) {
        List<Receipt.Line> lines = new ArrayList<>(order.lines().size());
        for (Order.Line line : order.lines()) {
            lines.add(new Receipt.Line(line.sku(), line.quantity(), line.quantity() * line.price()));
        }
        return new Receipt(order.id(), order.customer(), lines, order.note());
    }
}
