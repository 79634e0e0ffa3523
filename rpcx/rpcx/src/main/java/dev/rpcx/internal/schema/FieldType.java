package dev.rpcx.internal.schema;

import dev.rpcx.schema.SchemaException;
import org.jspecify.annotations.Nullable;

/**
 * One field of a message.
 *
 * @param name name of the component in Java
 * @param holder how the Java value holds the shape
 * @param shape shape of the value, of the element, or of the map's value
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
    /** How a Java value holds the value that is on the wire. */
    public enum Holder {
        /** The value itself; a default value is not sent. */
        PLAIN,
        /** Null or the value; {@code optional} in Protobuf. */
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

    /** Says whether several values stand in one length-delimited run of bytes. */
    public boolean packed() {
        return (holder == Holder.LIST || holder == Holder.SET) && shape.wireType() != 2;
    }

    /** Returns the tag that stands before the value on the wire: number and wire type. */
    public int tag() {
        return number << 3 | (packed() || holder == Holder.MAP ? 2 : shape.wireType());
    }
}
