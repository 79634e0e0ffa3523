package dev.rpcx.internal.schema;

/**
 * Java types of which each value is a message of a fixed form, which is Protobuf's own form where Protobuf has one. An
 * absent value is null.
 */
public enum WellKnown implements Shape {
    INSTANT("google.protobuf.Timestamp"),
    DURATION("google.protobuf.Duration"),
    /**
     * {@code bytes unscaled = 1} in two's complement with the most significant byte first, empty for zero;
     * {@code sint32 scale = 2}.
     */
    DECIMAL("rpcx.Decimal"),
    /** {@code sint64 days = 1}, counted from 1970-01-01. */
    LOCAL_DATE("rpcx.LocalDate"),
    /**
     * {@code int64 seconds = 1}, counted from 1970-01-01T00:00 on the same clock, without a zone;
     * {@code int32 nanos = 2}.
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
