package dev.rpcx.schema;

/** What one value is on the wire: the type of a Protobuf field, without its number and label. */
public sealed interface Shape permits Scalar, WellKnown, EnumType, MessageType {
    /** The name it has in a {@code .proto}. */
    String protoName();

    /** Protobuf's wire type of one value, not packed: 0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes. */
    int wireType();
}
