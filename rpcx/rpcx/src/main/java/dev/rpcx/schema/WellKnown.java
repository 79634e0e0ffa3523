package dev.rpcx.schema;

/** Java types that are a message of fixed form: Protobuf's own where there is one. Null is absent. */
public enum WellKnown implements Shape {
    INSTANT("google.protobuf.Timestamp"),
    DURATION("google.protobuf.Duration"),
    /**
     * {@code bytes unscaled = 1} in two's complement, most significant first, empty for zero; {@code sint32 scale = 2}.
     */
    DECIMAL("rpcx.Decimal"),
    /** {@code sint64 days = 1} since 1970-01-01. */
    LOCAL_DATE("rpcx.LocalDate"),
    /** {@code int64 seconds = 1} since 1970-01-01T00:00 on the same clock, without a zone; {@code int32 nanos = 2}. */
    LOCAL_DATE_TIME("rpcx.LocalDateTime");

    private final String protoName;

    WellKnown(String protoName) {
        this.protoName = protoName;
    }

    @Override
    public String protoName() {
        return protoName;
    }

    @Override
    public int wireType() {
        return 2;
    }
}
