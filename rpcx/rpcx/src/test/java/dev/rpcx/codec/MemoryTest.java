package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import dev.rpcx.schema.Lock;
import dev.rpcx.schema.Schema;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What a reader asks for before it makes objects, held against what the virtual machine says that it allocates. */
class MemoryTest {
    record Point(int x, int y) {}

    record Named(String first, String second, List<String> others) {}

    record Numbers(List<Integer> all) {}

    record Distinct(Set<Integer> all) {}

    record Counts(Map<Integer, Integer> all) {}

    record Points(List<Point> all) {}

    record Names(List<Named> all) {}

    record Text(String text) {}

    private static final int MANY = 100_000;

    private static Set<Integer> ints() {
        return IntStream.range(0, MANY).boxed().collect(Collectors.toSet());
    }

    enum Shape {
        NUMBERS(new Numbers(List.copyOf(ints()))),
        DISTINCT(new Distinct(ints())),
        COUNTS(new Counts(ints().stream().collect(Collectors.toMap(i -> i, i -> i)))),
        POINTS(new Points(ints().stream().map(i -> new Point(i, i)).toList())),
        NAMES(new Names(ints().stream()
                .map(i -> new Named("a", "b" + i, List.of("c")))
                .limit(20_000)
                .toList())),
        TEXT(new Text("x".repeat(1_000_000)));

        final Object value;

        Shape(Object value) {
            this.value = value;
        }
    }

    private static Codec<Object> codec(Class<?> type) {
        return Codecs.reflective(new Schema(Lock.none()), Limits.STANDARD).value(type);
    }

    private static ByteBuf written(Codec<Object> codec, Object value) {
        ByteBuf bytes = Unpooled.buffer();
        codec.write(value, bytes);
        return bytes;
    }

    @ParameterizedTest
    @EnumSource(Shape.class)
    void whatIsAskedForIsAboutWhatIsAllocated(Shape shape) {
        Codec<Object> codec = codec(shape.value.getClass());
        ByteBuf bytes = written(codec, shape.value);
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        codec.read(bytes.duplicate());
        AtomicLong asked = new AtomicLong();
        long before = threads.getCurrentThreadAllocatedBytes();
        Object read = codec.read(bytes.duplicate(), more -> asked.addAndGet(more) > 0);
        long allocated = threads.getCurrentThreadAllocatedBytes() - before;
        assertThat(read).isEqualTo(shape.value);
        // tables and lists that grow are allocated more than once, and what is left of that is garbage
        assertThat(asked.get()).isBetween(allocated / 3, 3 * allocated);
    }

    @Test
    void aSmallMessageAsksForNothing() {
        Codec<Object> codec = codec(Points.class);
        Points few = new Points(List.of(new Point(1, 2), new Point(3, 4)));
        assertThat(codec.read(written(codec, few), more -> {
                    throw new AssertionError(more + " bytes");
                }))
                .isEqualTo(few);
    }

    @Test
    void whatIsNotGrantedIsNotRead() {
        Codec<Object> codec = codec(Distinct.class);
        ByteBuf bytes = written(codec, new Distinct(ints()));
        AtomicLong asked = new AtomicLong();
        assertThatThrownBy(() -> codec.read(bytes.duplicate(), more -> asked.addAndGet(more) < 1 << 20))
                .isInstanceOfSatisfying(
                        CodecException.class,
                        refused -> assertThat(refused.code()).isEqualTo(CodecException.Code.NO_MEMORY));
        assertThat(asked.get()).isLessThan(2 << 20);
        assertThat(codec.read(bytes)).isEqualTo(new Distinct(ints()));
    }
}
