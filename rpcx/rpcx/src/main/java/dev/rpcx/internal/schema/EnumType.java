package dev.rpcx.internal.schema;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A Java enum. Its constants are sent as numbers.
 *
 * @param javaClass class of the enum
 * @param numbers numbers of the constants; the index is the ordinal of the constant
 * @param unknown constant that is read for a number that no constant has; its own number is 0. If null, such a number
 *     is refused, except 0, which is read as null
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

    /** Returns the constants in the order of their ordinals. */
    public Enum<?>[] constants() {
        return (Enum<?>[]) javaClass.getEnumConstants();
    }
}
