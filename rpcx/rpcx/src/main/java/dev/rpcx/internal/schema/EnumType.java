package dev.rpcx.internal.schema;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A Java enum, whose constants are sent as numbers.
 *
 * @param javaClass class of the enum
 * @param numbers numbers of the constants, in the order of the constants' ordinals
 * @param unknown constant that is read for every number that no constant has; the number of {@code unknown} itself is
 *     0. If {@code unknown} is null, a number that no constant has is refused, except 0, which is read as null
 * @param source source of the constants' numbers
 * @param reserved numbers and names of removed constants
 * @param formerNames names that constants had before they were renamed, by the numbers of the constants
 */
public record EnumType(
        String protoName,
        Class<?> javaClass,
        List<Integer> numbers,
        @Nullable Enum<?> unknown,
        NumberSource source,
        List<MessageType.Reserved> reserved,
        Map<Integer, List<String>> formerNames)
        implements Shape {
    public EnumType {
        numbers = List.copyOf(numbers);
        reserved = List.copyOf(reserved);
        formerNames = Map.copyOf(formerNames);
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
