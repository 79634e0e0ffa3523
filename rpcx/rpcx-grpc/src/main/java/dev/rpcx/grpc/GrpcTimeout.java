package dev.rpcx.grpc;

import java.util.concurrent.TimeUnit;

/** Reads the header {@code grpc-timeout}. Source: gRPC over HTTP2, "Timeout". */
final class GrpcTimeout {
    /** Result of {@link #micros} if the text is not a time. */
    static final long MALFORMED = -1;

    private static final int MAX_DIGITS = 8;

    private GrpcTimeout() {}

    /** Returns a time such as {@code 250m}, which is 250 ms, in microseconds, rounded down. */
    static long micros(CharSequence text) {
        int digits = text.length() - 1;
        if (digits < 1 || digits > MAX_DIGITS) {
            return MALFORMED;
        }
        long value = 0;
        for (int i = 0; i < digits; i++) {
            char digit = text.charAt(i);
            if (digit < '0' || digit > '9') {
                return MALFORMED;
            }
            value = 10 * value + (digit - '0');
        }
        return switch (text.charAt(digits)) {
            case 'H' -> TimeUnit.HOURS.toMicros(value);
            case 'M' -> TimeUnit.MINUTES.toMicros(value);
            case 'S' -> TimeUnit.SECONDS.toMicros(value);
            case 'm' -> TimeUnit.MILLISECONDS.toMicros(value);
            case 'u' -> value;
            case 'n' -> TimeUnit.NANOSECONDS.toMicros(value);
            default -> MALFORMED;
        };
    }
}
