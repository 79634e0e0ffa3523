package dev.rpcx.internal.schema;

/**
 * Java types that are sent as messages of a fixed form. The message is Protobuf's own if Protobuf has one. If the
 * message is absent on the wire, the Java value is null.
 */
public enum WellKnown implements Shape {
    INSTANT("google.protobuf.Timestamp"),
    DURATION("google.protobuf.Duration"),
    /**
     * A {@link java.math.BigDecimal}. The field {@code bytes unscaled = 1} is the unscaled value in two's complement,
     * with the most significant byte first, and is empty for zero. The field {@code sint32 scale = 2} is the scale.
     */
    DECIMAL("rpcx.Decimal"),
    /** A {@link java.time.LocalDate}. The field {@code sint64 days = 1} is the number of days since 1970-01-01. */
    LOCAL_DATE("rpcx.LocalDate"),
    /**
     * A {@link java.time.LocalDateTime}. The field {@code int64 seconds = 1} is the number of seconds since
     * 1970-01-01T00:00 on the same local clock, without a time zone. The field {@code int32 nanos = 2} is the number of
     * nanoseconds within the second.
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
