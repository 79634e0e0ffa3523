package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.codec.CodecException.Code;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.Schema;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Tests messages that are well-formed but make the reader's own classes take much time or memory, and classes that
 * throw whatever can be thrown.
 */
class HostileValuesTest {
    enum Thrown {
        ASSERTION,
        INITIALIZER,
        STACK,
        MEMORY,
        CHECKED,
        WITHOUT_WORDS;

        void now() {
            switch (this) {
                case ASSERTION -> throw new AssertionError("by a constructor");
                case INITIALIZER -> Broken.touch();
                case STACK -> now();
                case MEMORY -> throw new OutOfMemoryError("by a constructor");
                case CHECKED -> HostileValuesTest.<RuntimeException>sneaky(new Exception("by a constructor"));
                case WITHOUT_WORDS -> throw new Wordless();
            }
        }
    }

    static final class Broken {
        static final int VALUE = Integer.parseInt("by a constructor");

        static void touch() {
            // a call of this method initializes the class
        }
    }

    static final class Wordless extends RuntimeException {
        @Override
        public String toString() {
            throw new IllegalStateException("no words");
        }
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> void sneaky(Throwable t) throws E {
        throw (E) t;
    }

    private static Thrown thrown = Thrown.ASSERTION;
    private static boolean armed;

    record Throwing(int value) {
        Throwing {
            if (armed) {
                thrown.now();
            }
        }

        @Override
        public int value() {
            if (armed) {
                thrown.now();
            }
            return value;
        }
    }

    record Holds(List<Throwing> all, Set<Throwing> set, Map<Throwing, Throwing> map) {}

    record Point(int x, int y) {}

    record Points(Set<Point> points, Map<Point, Integer> byPoint) {}

    record Wide(
            long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l, long m) {}

    record Wides(List<Wide> wides) {}

    record Pockets(List<Pocket> pockets) {}

    record Pocket(Map<Integer, Integer> map, Set<Integer> set) {}

    record Tree(List<Tree> children, String text) {}

    private static final Schema SCHEMA = new Schema(LockFile.none());

    private static List<Codec<Object>> codecs(Class<?> type) {
        return List.of(
                Codecs.of(SCHEMA, Limits.STANDARD).value(type),
                Codecs.reflective(SCHEMA, Limits.STANDARD).value(type));
    }

    private static void refusedAsTooLarge(Class<?> type, ByteBuf bytes, String words) {
        for (Codec<Object> codec : codecs(type)) {
            assertThatThrownBy(() -> codec.read(bytes.duplicate()))
                    .isInstanceOfSatisfying(
                            CodecException.class, e -> assertThat(e.code()).isEqualTo(Code.TOO_LARGE))
                    .hasMessageContaining(words);
        }
    }

    @ParameterizedTest
    @EnumSource(Thrown.class)
    void whateverATypesOwnCodeThrowsIsACodecException(Thrown each) {
        thrown = each;
        Throwing plain = new Throwing(7);
        Object value = new Holds(List.of(plain), Set.of(plain), Map.of(plain, plain));
        for (Codec<Object> codec : codecs(Holds.class)) {
            ByteBuf bytes = Unpooled.buffer();
            codec.write(value, bytes);
            ByteBuf out = Unpooled.buffer();
            armed = true;
            try {
                assertThatThrownBy(() -> codec.read(bytes.duplicate()))
                        .isInstanceOfSatisfying(CodecException.class, e -> {
                            assertThat(e.code()).isEqualTo(Code.REFUSED);
                            assertThat(e.getCause()).isNotNull();
                        });
                assertThatThrownBy(() -> codec.write(value, out))
                        .isInstanceOfSatisfying(
                                CodecException.class, e -> assertThat(e.code()).isEqualTo(Code.REFUSED));
            } finally {
                armed = false;
            }
            assertThat(out.readableBytes()).isZero();
            // neither the reader nor the writer has kept anything of it
            assertThat(codec.read(bytes.duplicate())).isEqualTo(value);
        }
    }

    /** Records compute 31 x + y. So all these have the same hash, and no order that a tree could use. */
    private static Point collision(int i) {
        return new Point(i, -31 * i);
    }

    @Test
    void keysOfOneHashAreRefusedBeforeTheyTakeLong() {
        Set<Point> set = new LinkedHashSet<>();
        Map<Point, Integer> map = new LinkedHashMap<>();
        ByteBuf sets = Unpooled.buffer();
        ByteBuf maps = Unpooled.buffer();
        Codec<Object> codec = codecs(Points.class).get(0);
        // the values are written in parts, because it would take long to collect so many in one set
        for (int i = 0; i < 40_000; i++) {
            set.add(collision(i));
            map.put(collision(i), 1);
            if (set.size() == 100) {
                codec.write(new Points(set, Map.of()), sets);
                codec.write(new Points(Set.of(), map), maps);
                set.clear();
                map.clear();
            }
        }
        refusedAsTooLarge(Points.class, sets, "hash");
        refusedAsTooLarge(Points.class, maps, "hash");
    }

    @Test
    void keysThatHappenToShareAHashAreRead() {
        Set<Point> set = new LinkedHashSet<>();
        Map<Point, Integer> map = new LinkedHashMap<>();
        for (int x = 0; x < 200; x++) {
            for (int y = 0; y < 200; y++) {
                set.add(new Point(x, y));
                map.put(new Point(x, y), x);
            }
        }
        for (int i = 1; i < 500; i++) {
            set.add(collision(i));
        }
        Points points = new Points(set, map);
        for (Codec<Object> codec : codecs(Points.class)) {
            ByteBuf bytes = Unpooled.buffer();
            codec.write(points, bytes);
            assertThat(codec.read(bytes)).isEqualTo(points);
        }
    }

    @Test
    void elementsOfTwoBytesMayNotBecomeAHundredTimesAsMuch() {
        ByteBuf wides = Unpooled.buffer();
        for (int i = 0; i < 900_000; i++) {
            wides.writeByte(1 << 3 | 2).writeByte(0);
        }
        refusedAsTooLarge(Wides.class, wides, "memory");
        ByteBuf pockets = Unpooled.buffer();
        for (int i = 0; i < 400_000; i++) {
            // this is one entry with default values
            pockets.writeByte(1 << 3 | 2).writeByte(2).writeByte(1 << 3 | 2).writeByte(0);
        }
        refusedAsTooLarge(Pockets.class, pockets, "memory");
    }

    /** Its setter may be called with an array or with bytes one by one. */
    public static class Blob {
        private byte[] data = {};

        public byte[] getData() {
            return data;
        }

        public void setData(byte... data) {
            this.data = data;
        }
    }

    @Test
    void aSetterOfVariableArityIsGivenTheArray() {
        Blob blob = new Blob();
        blob.setData((byte) 1, (byte) 2);
        for (Codec<Object> codec : codecs(Blob.class)) {
            ByteBuf bytes = Unpooled.buffer();
            codec.write(blob, bytes);
            assertThat(((Blob) codec.read(bytes)).getData()).containsExactly(1, 2);
        }
    }

    @Test
    void manyEmptyRecordsAreRead() {
        List<Wide> wides = new ArrayList<>();
        for (int i = 0; i < 5_000; i++) {
            wides.add(new Wide(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
        }
        for (Codec<Object> codec : codecs(Wides.class)) {
            ByteBuf bytes = Unpooled.buffer();
            codec.write(new Wides(wides), bytes);
            assertThat(codec.read(bytes)).isEqualTo(new Wides(wides));
        }
    }

    @Test
    void listsWithinListsMakeNoMoreRoomTogetherThanTheirMessageHasBytes() {
        com.sun.management.ThreadMXBean threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        for (Codec<Object> codec : codecs(Tree.class)) {
            // the last list was long, so the next one is expected to be long too
            List<Tree> children = new ArrayList<>();
            for (int i = 0; i < 500_000; i++) {
                children.add(new Tree(List.of(), ""));
            }
            ByteBuf bytes = Unpooled.buffer();
            codec.write(new Tree(children, ""), bytes);
            codec.read(bytes);
            Tree tree = new Tree(List.of(), "x".repeat(3_000_000));
            for (int i = 0; i < 90; i++) {
                tree = new Tree(List.of(tree), "");
            }
            codec.write(tree, bytes.clear());
            long before = threads.getThreadAllocatedBytes(Thread.currentThread().getId());
            assertThat(codec.read(bytes)).isEqualTo(tree);
            assertThat(threads.getThreadAllocatedBytes(Thread.currentThread().getId()) - before)
                    .as("bytes allocated for 3 MB")
                    .isLessThan(30_000_000);
        }
    }
}
