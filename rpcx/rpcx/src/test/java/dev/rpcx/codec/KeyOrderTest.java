package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.schema.Scalar;
import dev.rpcx.schema.Shape;
import dev.rpcx.schema.WellKnown;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.reflect.ParameterizedType;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Keys of which many may have one hash: those that the JDK's tables do not find by their order are counted. */
class KeyOrderTest {
    static Stream<Shape> shapes() {
        return Stream.concat(Arrays.stream(Scalar.values()), Arrays.stream(WellKnown.values()));
    }

    private static Class<?> classOf(Shape shape) {
        if (shape instanceof Scalar scalar) {
            return switch (scalar) {
                case BOOL -> Boolean.class;
                case BYTE -> Byte.class;
                case SHORT -> Short.class;
                case CHAR -> Character.class;
                case INT -> Integer.class;
                case LONG -> Long.class;
                case FLOAT -> Float.class;
                case DOUBLE -> Double.class;
                case STRING -> String.class;
                // is no key
                case BYTES -> Integer.class;
                case BIG_INTEGER -> BigInteger.class;
                case UUID -> UUID.class;
            };
        }
        return switch ((WellKnown) shape) {
            case INSTANT -> Instant.class;
            case DURATION -> Duration.class;
            case DECIMAL -> BigDecimal.class;
            case LOCAL_DATE -> LocalDate.class;
            case LOCAL_DATE_TIME -> LocalDateTime.class;
        };
    }

    /** As {@code HashMap} asks. */
    private static boolean isComparable(Class<?> type) {
        return Arrays.stream(type.getGenericInterfaces())
                .anyMatch(face -> face instanceof ParameterizedType with
                        && with.getRawType() == Comparable.class
                        && with.getActualTypeArguments()[0] == type);
    }

    @ParameterizedTest
    @MethodSource("shapes")
    void whatHasAnOrderIsFoundByIt(Shape shape) {
        if (ElementCodec.of(shape, new ElementCodec.MessageLink()).hasOrder()) {
            assertThat(isComparable(classOf(shape))).isTrue();
        }
    }

    record Times(Set<LocalDateTime> times) {}

    /** The same bytes. */
    record TimesInAList(List<LocalDateTime> times) {}

    /** Of one hash each: what another day adds to it, other nanoseconds take away. */
    private static List<LocalDateTime> ofOneHash(int count) {
        List<LocalDateTime> times = new ArrayList<>();
        LocalDateTime first = LocalDateTime.of(2000, 1, 1, 0, 0);
        int hash = first.hashCode();
        for (long high = 0; times.size() < count; high++) {
            // the hash of a time is that of its nanoseconds of the day, folded to 32 bits
            for (int day = 1; day <= 28 && times.size() < count; day++) {
                LocalDate date = LocalDate.of(2000, 1, day);
                long nanos = high << 32 | Integer.toUnsignedLong(hash ^ date.hashCode() ^ (int) high);
                if (nanos >= 0 && nanos < 86_400_000_000_000L) {
                    LocalDateTime time = date.atStartOfDay().plusNanos(nanos);
                    if (time.hashCode() == hash) {
                        times.add(time);
                    }
                }
            }
        }
        return times;
    }

    @Test
    void timesOfOneHashAreRefusedBeforeTheyKeepAProcessorBusy() {
        Codecs codecs = Codecs.standard(KeyOrderTest.class);
        ByteBuf out = Unpooled.buffer();
        codecs.value(TimesInAList.class).write(new TimesInAList(ofOneHash(20_000)), out);
        assertThatThrownBy(() -> codecs.value(Times.class).read(out))
                .isInstanceOf(CodecException.class)
                .hasMessageContaining("the same hash");
    }
}
