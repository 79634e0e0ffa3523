package dev.rpcx.bench;

import java.math.BigDecimal;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;

/** One value of each type that services exchange, as in kazanavicius, figure 2. */
public record Row(
        String text,
        boolean flag,
        int octet,
        LocalDateTime at,
        BigDecimal amount,
        float ratio,
        int count,
        short small,
        long big) {

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
