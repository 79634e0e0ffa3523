package dev.rpcx.internal.schema;

import dev.rpcx.schema.SchemaException;
import org.jspecify.annotations.Nullable;

/**
 * One field of a message.
 *
 * @param name name of the record component, property or parameter in Java; for a case of a sealed type, the name that
 *     {@link Cases#field} returns; in a message that RPCX makes for one value, {@code value} or {@code items}
 * @param holder how the Java value holds the values that are on the wire, for example as the elements of a list
 * @param shape type of a value on the wire; for a list or a set, the type of an element; for a map, the type of the
 *     map's values
 * @param key type of the map's keys on the wire; null if the field is not a map
 * @param javaClass erased type of the Java value
 */
public record FieldType(
        String name,
        int number,
        Holder holder,
        Shape shape,
        @Nullable Shape key,
        Class<?> javaClass) {
    /** How the Java value of a field holds the values that are on the wire, for example as the elements of a list. */
    public enum Holder {
        /** The Java value is the value on the wire. Protobuf's default value, for example 0, is not sent. */
        PLAIN,
        /** The Java value is the value on the wire, or null. The field is {@code optional} in Protobuf. */
        NULLABLE,
        /**
         * The Java value is a {@link java.util.Optional}. In Protobuf, the field is {@code optional}, unless its
         * Protobuf type is a message.
         */
        OPTIONAL,
        /**
         * The Java value is a {@link java.util.List} or a {@link java.util.Collection}. The field is {@code repeated}
         * in Protobuf.
         */
        LIST,
        /** The Java value is a {@link java.util.Set}. The field is {@code repeated} in Protobuf. */
        SET,
        /** The Java value is a {@link java.util.Map}. */
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

    /**
     * Returns whether this field is a list or a set whose elements are packed, that is, written behind a single tag and
     * length.
     */
    public boolean isPacked() {
        return (holder == Holder.LIST || holder == Holder.SET) && shape.wireType() != 2;
    }

    /**
     * Returns the tag that precedes the field's value on the wire. The tag combines the field's number and the wire
     * type.
     */
    public int tag() {
        return number << 3 | (isPacked() || holder == Holder.MAP ? 2 : shape.wireType());
    }
}
