package dev.rpcx.internal.schema;

/**
 * Type of a single value on the wire. A {@link FieldType} adds the number of the field, and says whether the field
 * holds a single value, a list, a set or a map.
 */
public sealed interface Shape permits Scalar, WellKnown, EnumType, MessageType {
    /**
     * Returns the name of this type in a {@code .proto} file. Two types can have one name, such as two nested records of
     * two classes: {@link ProtoFile} gives the second one another name.
     */
    String protoName();

    /**
     * Returns Protobuf's wire type of a value that is not packed. The wire type is 0 for a varint, 1 for eight bytes, 2
     * for length-delimited bytes, and 5 for four bytes.
     */
    int wireType();
}
