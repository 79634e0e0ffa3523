package dev.rpcx.internal.schema;

/**
 * Java types that are sent as messages of a fixed form. The message is Protobuf's or Google's own if it can hold all
 * that the Java type holds. If the message is absent on the wire, the Java value is null.
 */
public enum WellKnown implements Shape {
    INSTANT("google.protobuf.Timestamp"),
    /** A {@link java.util.Date}, which has milliseconds. Its reader drops what is finer. */
    DATE("google.protobuf.Timestamp"),
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
    LOCAL_DATE_TIME("rpcx.LocalDateTime"),
    /**
     * A {@link java.time.LocalTime}. The fields {@code int32} 1 to 4 are hours, minutes, seconds and nanoseconds.
     */
    LOCAL_TIME("google.type.TimeOfDay"),
    /**
     * A {@link java.time.OffsetDateTime}. The fields {@code int32} 1 to 7 are year, month, day, hours, minutes, seconds
     * and nanoseconds. The field {@code google.protobuf.Duration utc_offset = 8} is the offset.
     */
    OFFSET_DATE_TIME("google.type.DateTime"),
    /**
     * A {@link java.time.ZonedDateTime}. The field {@code google.protobuf.Timestamp time = 1} is the point in time, and
     * {@code string zone = 2} the id of the zone. A {@code google.type.DateTime} is not used, since it has either the
     * zone or the offset, and cannot tell apart the two hours that a clock shows twice when it is set back.
     */
    ZONED_DATE_TIME("rpcx.ZonedDateTime");

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
