package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.UnknownFieldSet;
import dev.rpcx.LongForm;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Schema;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/**
 * Tests the kinds of input that Protobuf's own conformance suite has (binary_json_conformance_suite.cc). RPCX and
 * protobuf-java read the same value from an input, or both refuse it. The exceptions are listed here with their
 * reasons.
 */
class ConformanceTest {
    record Sub(int a, String t, Sub next) {}

    record All(
            boolean bool,
            int number,
            long wide,
            float single,
            double twice,
            String text,
            byte[] bytes,
            Sub sub,
            List<Integer> numbers,
            List<String> texts,
            List<Sub> subs,
            Map<Integer, String> map,
            Optional<Integer> maybe,
            List<Boolean> bools,
            List<Double> doubles,
            Map<String, Sub> subByText) {}

    record Few(int number, List<Integer> numbers) {}

    /** The inputs that RPCX refuses although protobuf-java reads them. */
    private enum Stricter {
        /**
         * Protobuf takes the field for an unknown one. What was sent under that number would be lost without an error.
         */
        WIRE_TYPE("wire type \\d (does not fit it|for field \\d+ of an? .*)$"),
        /** Protobuf cuts the number to 32 bits, and so reads another number than was sent. */
        RANGE("-?\\d+ for an? int \\(expected.*"),
        /**
         * protobuf-java accepts ten bytes of which the last says that another one follows. Its own slower path refuses
         * them.
         */
        ENDLESS("(ends in the middle of a number|a number of more than ten bytes)"),
        /** Protobuf cuts a tag to 32 bits, and so reads another field than was sent. */
        TAG("a tag of \\d+ .*");

        private final Pattern words;

        Stricter(String words) {
            this.words = Pattern.compile(".*: " + words);
        }
    }

    private static final Schema SCHEMA = new Schema(LockFile.none());

    private final Set<Stricter> met = new LinkedHashSet<>();
    private int inputs;
    private int equal;
    private int refused;

    private final class Reader {
        private final MessageType type;
        private final Oracle oracle = new Oracle();
        private final Descriptor descriptor;
        private final List<Codec<Object>> codecs;

        Reader(Class<?> javaType) {
            type = SCHEMA.value(javaType);
            oracle.add(type);
            descriptor = oracle.descriptor(type);
            codecs = List.of(
                    Codecs.of(SCHEMA, Limits.STANDARD).value(javaType),
                    Codecs.reflective(SCHEMA, Limits.STANDARD).value(javaType));
        }

        void check(String name, byte[] input) {
            inputs++;
            DynamicMessage expected = theirs(input);
            for (Codec<Object> codec : codecs) {
                Object value;
                try {
                    value = codec.read(Unpooled.wrappedBuffer(input));
                } catch (CodecException e) {
                    if (expected != null) {
                        met.add(stricter(name, input, e));
                    } else {
                        refused++;
                    }
                    continue;
                }
                if (expected == null) {
                    fail("%s, %s: we read %s, protobuf-java refuses", name, hex(input), value);
                }
                DynamicMessage ours = oracle.message(type, value);
                if (!ours.equals(expected)) {
                    fail("%s, %s: we read %s, protobuf-java %s", name, hex(input), ours, expected);
                }
                equal++;
            }
        }

        private @Nullable DynamicMessage theirs(byte[] input) {
            try {
                return known(DynamicMessage.parseFrom(descriptor, input));
            } catch (InvalidProtocolBufferException e) {
                return null;
            }
        }
    }

    /** Returns the message without its unknown fields, also in all messages within it. */
    private static DynamicMessage known(DynamicMessage message) {
        DynamicMessage.Builder builder = message.toBuilder().setUnknownFields(UnknownFieldSet.getDefaultInstance());
        message.getAllFields().forEach((field, value) -> {
            if (value instanceof DynamicMessage one) {
                builder.setField(field, known(one));
            } else if (value instanceof List<?> many && !many.isEmpty() && many.get(0) instanceof DynamicMessage) {
                builder.clearField(field);
                if (field.isMapField()) {
                    // if two entries have the same key, the later one counts
                    Map<Object, DynamicMessage> byKey = new LinkedHashMap<>();
                    for (Object each : many) {
                        DynamicMessage entry = entry((DynamicMessage) each);
                        byKey.put(entry.getField(entry.getDescriptorForType().findFieldByNumber(1)), entry);
                    }
                    byKey.values().forEach(each -> builder.addRepeatedField(field, each));
                } else {
                    many.forEach(each -> builder.addRepeatedField(field, known((DynamicMessage) each)));
                }
            }
        });
        return builder.build();
    }

    /** Returns the entry with key and value set, even if they have default values. */
    private static DynamicMessage entry(DynamicMessage parsed) {
        DynamicMessage.Builder entry = known(parsed).toBuilder();
        parsed.getDescriptorForType().getFields().forEach(field -> entry.setField(field, entry.getField(field)));
        return entry.build();
    }

    private static Stricter stricter(String name, byte[] input, CodecException e) {
        for (Stricter each : Stricter.values()) {
            boolean fits = each.words.matcher(String.valueOf(e.getMessage())).matches();
            if (fits && (each != Stricter.ENDLESS || hasTenThatGoOn(input))) {
                return each;
            }
        }
        return fail("%s, %s: protobuf-java reads it, we refuse: %s", name, hex(input), e.getMessage());
    }

    private static boolean hasTenThatGoOn(byte[] input) {
        int inARow = 0;
        for (byte each : input) {
            inARow = each < 0 ? inARow + 1 : 0;
            if (inARow == 10) {
                return true;
            }
        }
        return false;
    }

    private static String hex(byte[] bytes) {
        return HexFormat.ofDelimiter(" ").formatHex(bytes);
    }

    // ---- the suite's own words for bytes

    private static byte[] cat(byte[]... parts) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            out.writeBytes(part);
        }
        return out.toByteArray();
    }

    private static byte[] varint(long value) {
        return longVarint(value, 0);
    }

    /** Returns the value in more bytes than it needs. */
    private static byte[] longVarint(long value, int extra) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        long rest = value;
        while ((rest & ~0x7FL) != 0) {
            out.write((int) (rest | 0x80));
            rest >>>= 7;
        }
        out.write((int) (extra > 0 ? rest | 0x80 : rest));
        for (int i = 0; i < extra; i++) {
            out.write(i == extra - 1 ? 0 : 0x80);
        }
        return out.toByteArray();
    }

    private static byte[] tag(int number, int wireType) {
        return varint(Integer.toUnsignedLong(number << 3 | wireType));
    }

    private static byte[] delimited(byte[] content) {
        return cat(varint(content.length), content);
    }

    private static byte[] fixed(int bytes, int fill) {
        byte[] all = new byte[bytes];
        java.util.Arrays.fill(all, (byte) fill);
        return all;
    }

    private static byte[] text(String text) {
        return delimited(text.getBytes(StandardCharsets.UTF_8));
    }

    /** Returns valid values of a wire type, with and without unnecessary bytes. */
    private static List<byte[]> values(int wireType) {
        List<byte[]> values = new ArrayList<>();
        switch (wireType) {
            case 0 -> {
                for (long v : new long[] {
                    0,
                    1,
                    127,
                    128,
                    12_345,
                    1L << 31,
                    Integer.MAX_VALUE,
                    Integer.MIN_VALUE,
                    -1,
                    1L << 32,
                    (1L << 33) - 1,
                    1L << 33,
                    Long.MAX_VALUE,
                    Long.MIN_VALUE
                }) {
                    for (int extra = 0; extra <= 3; extra++) {
                        values.add(longVarint(v, extra));
                    }
                    values.add(longVarint(v, 10 - varint(v).length));
                    values.add(longVarint(v, 11 - varint(v).length));
                }
                // the tenth byte has room for one bit
                values.add(cat(fixed(9, 0xff), new byte[] {0x7f}));
                values.add(cat(fixed(9, 0x80), new byte[] {2}));
                values.add(fixed(10, 0xff));
            }
            case 1 -> values.addAll(List.of(fixed(8, 0), fixed(8, 0xff), fixed(8, 0x40)));
            case 2 ->
                values.addAll(List.of(
                        delimited(new byte[0]),
                        text("é🙂"),
                        delimited(new byte[] {8, 1}),
                        delimited(fixed(1, 0xff)),
                        delimited(fixed(8, 0)),
                        delimited(fixed(7, 0)),
                        delimited(new byte[] {1, (byte) 0x80}),
                        cat(longVarint(2, 3), new byte[] {8, 1}),
                        delimited(cat(fixed(9, 0x80), new byte[] {1}))));
            case 5 -> values.addAll(List.of(fixed(4, 0), fixed(4, 0xff), fixed(4, 0x40)));
            default -> throw new IllegalArgumentException();
        }
        return values;
    }

    @Test
    void inputsOfTheConformanceSuiteAreReadAsProtobufReadsThem() {
        Reader all = new Reader(All.class);
        int[] numbers = new int[18];
        for (int i = 0; i < 17; i++) {
            numbers[i] = i + 1;
        }
        numbers[17] = 536_870_911;
        for (int number : numbers) {
            String field = "field " + number;
            for (int wireType : new int[] {0, 1, 2, 5}) {
                byte[] tag = tag(number, wireType);
                all.check(field + " ends before its value", tag);
                for (byte[] value : values(wireType)) {
                    byte[] whole = cat(tag, value);
                    for (int end = 1; end <= whole.length; end++) {
                        all.check(field + " ends at " + end, java.util.Arrays.copyOf(whole, end));
                    }
                    // of two values the later one counts, and a list has both; messages are left out, because Protobuf
                    // merges them
                    if (number != 8) {
                        List<byte[]> others = values(wireType);
                        for (int i = 0; i < others.size(); i += LongForm.of(11, 1)) {
                            all.check(field + " twice", cat(whole, tag, others.get(i)));
                        }
                    }
                    all.check(field + " in a message", cat(tag(8, 2), delimited(whole)));
                    all.check(field + " in a list's message", cat(tag(11, 2), delimited(whole)));
                    all.check(field + " in an entry", cat(tag(12, 2), delimited(whole)));
                    all.check(field + " in an entry with a message", cat(tag(16, 2), delimited(whole)));
                    all.check(field + " in a group", cat(tag(500, 3), whole, tag(500, 4)));
                    all.check(field + " after an unknown one", cat(tag(400, wireType), value, whole));
                }
                for (int extra = 1; extra < 10; extra++) {
                    all.check(
                            field + ", a tag of too many bytes",
                            cat(
                                    longVarint(Integer.toUnsignedLong(number << 3 | wireType), extra),
                                    values(wireType).get(0)));
                }
            }
            all.check(field + ", a tag of more than 32 bits", cat(varint(1L << 34 | number << 3), varint(1)));
            for (int wireType : new int[] {3, 4, 6, 7}) {
                all.check(field + " of wire type " + wireType, cat(tag(number, wireType), new byte[] {1, 1}));
            }
            for (long length : new long[] {-1, Integer.MAX_VALUE, Integer.MIN_VALUE, 1L << 31, 1L << 32, 1L << 63}) {
                all.check(field + " with a length of " + length, cat(tag(number, 2), varint(length), fixed(9, 1)));
            }
        }
        for (int wireType = 0; wireType < 8; wireType++) {
            all.check("field 0", cat(new byte[] {(byte) wireType}, "DEADBEEF".getBytes(StandardCharsets.US_ASCII)));
        }
        all.check(
                "packed and not",
                cat(tag(9, 2), delimited(new byte[] {1, 2}), tag(9, 0), varint(3), tag(9, 2), delimited(varint(-4))));
        all.check("packed and not, doubles", cat(tag(15, 1), fixed(8, 1), tag(15, 2), delimited(fixed(16, 2))));
        all.check("packed and not, booleans", cat(tag(14, 2), delimited(varint(1L << 60)), tag(14, 0), varint(0)));
        byte[] key = cat(tag(1, 0), varint(7));
        byte[] value = cat(tag(2, 2), text("seven"));
        byte[] other = cat(tag(2, 2), text("other"));
        all.check("an entry's value first", cat(tag(12, 2), delimited(cat(value, key))));
        all.check("an entry of defaults", cat(tag(12, 2), delimited(new byte[0])));
        all.check("an entry without a key", cat(tag(12, 2), delimited(value)));
        all.check("an entry without a value", cat(tag(12, 2), delimited(key)));
        all.check("an entry's value twice", cat(tag(12, 2), delimited(cat(key, value, other))));
        all.check("an entry's key twice", cat(tag(12, 2), delimited(cat(tag(1, 0), varint(1), value, key))));
        all.check("an entry with more", cat(tag(12, 2), delimited(cat(key, tag(3, 0), varint(1), value))));
        all.check("a key twice", cat(tag(12, 2), delimited(cat(key, value)), tag(12, 2), delimited(cat(key, other))));
        all.check("an entry without a message", cat(tag(16, 2), delimited(cat(tag(1, 2), text("k")))));
        all.check("an entry of defaults with a message", cat(tag(16, 2), delimited(new byte[0])));
        all.check("an entry with a message and no key", cat(tag(16, 2), delimited(cat(tag(2, 2), delimited(key)))));
        for (byte[] bad : List.of(
                fixed(1, 0x80),
                fixed(2, 0xc0),
                new byte[] {(byte) 0xed, (byte) 0xa0, (byte) 0x80},
                new byte[] {(byte) 0xf4, (byte) 0x90, (byte) 0x80, (byte) 0x80},
                new byte[] {(byte) 0xe2, (byte) 0x82})) {
            for (int number : new int[] {6, 10}) {
                all.check("no UTF-8", cat(tag(number, 2), delimited(bad)));
            }
            all.check("no UTF-8 in an entry", cat(tag(12, 2), delimited(cat(key, tag(2, 2), delimited(bad)))));
        }
        all.check("group in group", cat(tag(100, 3), tag(101, 3), tag(101, 4), tag(100, 4)));
        all.check("groups crossed", cat(tag(100, 3), tag(101, 3), tag(100, 4), tag(101, 4)));
        all.check("a group's end alone", tag(100, 4));
        byte[] deep = new byte[0];
        for (int depth = 1; depth < 98; depth++) {
            deep = cat(tag(3, 2), delimited(deep));
            all.check("depth " + depth, cat(tag(8, 2), delimited(deep)));
        }
        LongForm.figure(
                2,
                "%d inputs of Protobuf's conformance suite's kinds, each by two readers, generated and reflective: "
                        + "%d times the value that protobuf-java reads, "
                        + "%d times refused by both, else stricter: %s",
                inputs,
                equal,
                refused,
                met);
        assertThat(met).as("differences that are listed and met").containsExactlyInAnyOrder(Stricter.values());
        assertThat(equal).isGreaterThan(1_000);
        assertThat(refused).isGreaterThan(1_000);
    }

    /** Protobuf merges the two messages field by field. RPCX creates a record once, from the message that came last. */
    @Test
    void aMessageThatComesTwiceIsReplacedAndNotMerged() {
        byte[] both =
                cat(tag(8, 2), delimited(cat(tag(1, 0), varint(1))), tag(8, 2), delimited(cat(tag(2, 2), text("t"))));
        for (Codec<Object> codec : new Reader(All.class).codecs) {
            assertThat(((All) codec.read(Unpooled.wrappedBuffer(both))).sub()).isEqualTo(new Sub(0, "t", null));
        }
    }

    @Test
    void everyInputOfAFewBytesIsReadAsProtobufReadsIt() {
        Reader few = new Reader(Few.class);
        int length = LongForm.of(2, 3);
        for (int size = 0; size <= length; size++) {
            byte[] input = new byte[size];
            do {
                few.check("every input", input);
            } while (counted(input));
        }
        LongForm.figure(
                2,
                "every input of up to %d bytes, %d in all, each by two readers, generated and reflective: "
                        + "%d times read alike, %d times refused alike, else stricter",
                length,
                inputs,
                equal,
                refused);
    }

    private static boolean counted(byte[] input) {
        for (int i = 0; i < input.length; i++) {
            if (++input[i] != 0) {
                return true;
            }
        }
        return false;
    }
}
