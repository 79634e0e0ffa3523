package dev.rpcx.internal.schema;

/** Type of a single value on the wire. It is the type of a Protobuf field, without the field's number and label. */
public sealed interface Shape permits Scalar, WellKnown, EnumType, MessageType {
    /** Returns the name of this type in a {@code .proto} file. */
    String protoName();

    /**
     * Returns the Protobuf wire type of a single value that is not packed. 0 is a varint, 1 is eight bytes, 2 is
     * length-delimited, 5 is four bytes.
     */
    int wireType();
}
