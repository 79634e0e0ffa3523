package dev.parley.spi.messages;

import java.math.BigDecimal;
import java.time.LocalDateTime;

/**
 * Nine properties, one of each type. Source: kazanavicius, figure 2. C#'s {@code byte} is unsigned: 0 to 255, carried
 * in an {@code int}; its {@code DateTime} has no zone; its {@code decimal} keeps its scale, so 1.0 and 1.00 differ.
 */
public record TestModelAllTypes(
        String textField,
        boolean boolField,
        int byteField,
        LocalDateTime dateTimeField,
        BigDecimal decimalField,
        float floatField,
        int intField,
        short shortField,
        long longField) {}
