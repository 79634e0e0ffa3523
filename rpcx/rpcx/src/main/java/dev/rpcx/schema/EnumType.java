package dev.rpcx.schema;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A Java enum by number.
 *
 * @param javaClass the enum
 * @param numbers by ordinal
 * @param unknown the constant that an unknown number is read as; it has the number 0. Without one, 0 is null and
 *     another number is refused
 * @param source where the numbers came from
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

    /** Constants by ordinal. */
    public Enum<?>[] constants() {
        return (Enum<?>[]) javaClass.getEnumConstants();
    }
}
