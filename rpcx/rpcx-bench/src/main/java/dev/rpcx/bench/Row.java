package dev.rpcx.bench;

import dev.rpcx.schema.Field;
import java.math.BigDecimal;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;

/** Record with one value of each type that services exchange, as in kazanavicius, figure 2. */
public record Row(
        @Field(1) String text,
        @Field(2) boolean flag,
        @Field(3) int octet,
        @Field(4) LocalDateTime at,
        @Field(5) BigDecimal amount,
        @Field(6) float ratio,
        @Field(7) int count,
        @Field(8) short small,
        @Field(9) long big) {

    public static List<Row> sample(int n) {
        List<Row> rows = new ArrayList<>(n);
        for (int i = 0; i < n; i++) {
            rows.add(new Row(
                    "row number " + i,
                    i % 2 == 0,
                    i & 0xff,
                    LocalDateTime.of(2026, 1 + i % 12, 1 + i % 28, i % 24, i % 60, i % 60, i * 1000),
                    BigDecimal.valueOf(i * 7919L, 2),
                    i / 3f,
                    i * 31,
                    (short) i,
                    i * 1_000_000_007L));
        }
        return rows;
    }
}
