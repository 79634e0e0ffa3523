package dev.rpcx.internal.schema;

/**
 * Java types that each have a message of a fixed form, which is Protobuf's own if there is one. An absent value is
 * null.
 */
public enum WellKnown implements Shape {
    INSTANT("google.protobuf.Timestamp"),
    DURATION("google.protobuf.Duration"),
    /**
     * {@code bytes unscaled = 1} is in two's complement with the most significant byte first, and is empty for zero.
     * {@code sint32 scale = 2} is the scale.
     */
    DECIMAL("rpcx.Decimal"),
    /** {@code sint64 days = 1} is the number of days since 1970-01-01. */
    LOCAL_DATE("rpcx.LocalDate"),
    /**
     * {@code int64 seconds = 1} is the number of seconds since 1970-01-01T00:00 on the same local clock, without a time
     * zone. {@code int32 nanos = 2} is the number of nanoseconds within the second.
     */
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
