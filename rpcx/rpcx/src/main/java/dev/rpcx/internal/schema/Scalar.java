package dev.rpcx.internal.schema;

/** Java types whose values are each sent as one Protobuf scalar. */
public enum Scalar implements Shape {
    BOOL("bool", 0),
    BYTE("int32", 0),
    SHORT("int32", 0),
    /** A UTF-16 code unit, which is sent as its number. */
    CHAR("uint32", 0),
    INT("int32", 0),
    LONG("int64", 0),
    FLOAT("float", 5),
    DOUBLE("double", 1),
    STRING("string", 2),
    BYTES("bytes", 2),
    /**
     * A {@link java.math.BigInteger} in two's complement, with the most significant byte first. The number takes as few
     * bytes as possible, but at least one.
     */
    BIG_INTEGER("bytes", 2),
    /** A {@link java.util.UUID} as sixteen bytes, with the most significant byte first. */
    UUID("bytes", 2),
    /**
     * A {@link java.net.URI} as it is written. A field of this type is always {@code optional}, so that null is told
     * apart from the URI without characters.
     */
    URI("string", 2);

    private final String protoName;
    private final int wireType;

    Scalar(String protoName, int wireType) {
        this.protoName = protoName;
        this.wireType = wireType;
    }

    @Override
    public String protoName() {
        return protoName;
    }

    @Override
    public int wireType() {
        return wireType;
    }
}
