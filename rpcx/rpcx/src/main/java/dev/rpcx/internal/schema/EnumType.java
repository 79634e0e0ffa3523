package dev.rpcx.internal.schema;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A Java enum, whose constants are sent as numbers.
 *
 * @param javaClass class of the enum
 * @param numbers numbers of the constants, by ordinal
 * @param unknown constant that a number without a constant is read as; it has the number 0. If there is none, 0 without
 *     a constant is read as null, and any other number without a constant is refused
 * @param source source of the numbers
 * @param reserved numbers of removed constants
 */
public record EnumType(
        String protoName,
        Class<?> javaClass,
        List<Integer> numbers,
        @Nullable Enum<?> unknown,
        NumberSource source,
        List<MessageType.Reserved> reserved)
        implements Shape {
    public EnumType {
        numbers = List.copyOf(numbers);
        reserved = List.copyOf(reserved);
    }

    @Override
    public int wireType() {
        return 0;
    }

    /** Returns the constants by ordinal. */
    public Enum<?>[] constants() {
        return (Enum<?>[]) javaClass.getEnumConstants();
    }
}
