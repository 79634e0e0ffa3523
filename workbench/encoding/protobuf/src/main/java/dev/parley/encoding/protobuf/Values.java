package dev.parley.encoding.protobuf;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnsafeByteOperations;
import dev.parley.encoding.protobuf.values.DateTime;
import dev.parley.encoding.protobuf.values.Decimal;
import dev.parley.spi.CallException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.DateTimeException;
import java.time.LocalDateTime;
import java.time.ZoneOffset;

/**
 * Java's values for which Protobuf has no type. A message that is no value of the contract is refused as
 * {@link CallException.Code#PROTOCOL}.
 */
final class Values {
    private Values() {}

    static DateTime toMessage(LocalDateTime value) {
        return DateTime.newBuilder()
                .setEpochSecond(value.toEpochSecond(ZoneOffset.UTC))
                .setNano(value.getNano())
                .build();
    }

    static LocalDateTime toDateTime(DateTime message) {
        try {
            return LocalDateTime.ofEpochSecond(message.getEpochSecond(), message.getNano(), ZoneOffset.UTC);
        } catch (DateTimeException e) {
            throw new CallException(CallException.Code.PROTOCOL, "DateTime: " + e.getMessage(), e);
        }
    }

    static Decimal toMessage(BigDecimal value) {
        return Decimal.newBuilder()
                // the array is this call's own: no second copy needed
                .setUnscaled(
                        UnsafeByteOperations.unsafeWrap(value.unscaledValue().toByteArray()))
                .setScale(value.scale())
                .build();
    }

    static BigDecimal toDecimal(Decimal message) {
        ByteString unscaled = message.getUnscaled();
        require(!unscaled.isEmpty(), "Decimal.unscaled");
        return new BigDecimal(new BigInteger(unscaled.toByteArray()), message.getScale());
    }

    static short toShort(int value, String property) {
        if (value != (short) value) {
            throw new CallException(
                    CallException.Code.PROTOCOL, property + ": " + value + " (expected: -32768 to 32767)");
        }
        return (short) value;
    }

    static void require(boolean present, String property) {
        if (!present) {
            throw new CallException(CallException.Code.PROTOCOL, property + " is missing (expected: always there)");
        }
    }
}
