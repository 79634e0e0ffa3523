package dev.rpcx.internal.schema;

/** Type of one value on the wire, which is the type of a Protobuf field without the field's number and label. */
public sealed interface Shape permits Scalar, WellKnown, EnumType, MessageType {
    /** Returns the name of this type in a {@code .proto} file. */
    String protoName();

    /**
     * Returns Protobuf's wire type of a single value that is not packed: 0 is a varint, 1 eight bytes, 2
     * length-delimited, 5 four bytes.
     */
    int wireType();
}
