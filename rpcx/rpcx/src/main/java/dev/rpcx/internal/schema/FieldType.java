package dev.rpcx.internal.schema;

import dev.rpcx.schema.SchemaException;
import org.jspecify.annotations.Nullable;

/**
 * One field of a message.
 *
 * @param name name of the component in Java
 * @param holder how the Java value of the field holds the values of the shape, for example as the elements of a list
 * @param shape shape of a single value; for a list or a set, that of an element; for a map, that of a value of the map
 * @param key shape of the map's key; null if the field is not a map
 * @param javaClass erased type of the component
 */
public record FieldType(
        String name,
        int number,
        Holder holder,
        Shape shape,
        @Nullable Shape key,
        Class<?> javaClass) {
    /** How the Java value of a field holds the values that are on the wire, for example as a list. */
    public enum Holder {
        /** The value itself. A value that is Protobuf's default, such as 0, is not sent. */
        PLAIN,
        /** The value, or null; {@code optional} in Protobuf. */
        NULLABLE,
        /** {@link java.util.Optional}; {@code optional} in Protobuf. */
        OPTIONAL,
        /** {@link java.util.List} or {@link java.util.Collection}; {@code repeated} in Protobuf. */
        LIST,
        /** {@link java.util.Set}; {@code repeated} in Protobuf. */
        SET,
        /** {@link java.util.Map}. */
        MAP
    }

    public FieldType {
        if ((key != null) != (holder == Holder.MAP)) {
            throw new IllegalArgumentException(name + ": a map and only a map has a key");
        }
        checkNumber(name, number);
    }

    static void checkNumber(String name, int number) {
        if (number < 1 || number > 536_870_911 || number >= 19_000 && number <= 19_999) {
            throw new SchemaException(name + ": number " + number
                    + " (expected: 1 to 536870911 without 19000 to 19999, which Protobuf keeps)");
        }
    }

    /** Says whether the values of a list or set are written one after the other behind a single tag and length. */
    public boolean isPacked() {
        return (holder == Holder.LIST || holder == Holder.SET) && shape.wireType() != 2;
    }

    /** Returns the tag before the value on the wire: the number of the field and the wire type. */
    public int tag() {
        return number << 3 | (isPacked() || holder == Holder.MAP ? 2 : shape.wireType());
    }
}
