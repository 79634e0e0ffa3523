package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.CodedOutputStream;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.schema.Field;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests field numbers for each length that a tag can have, against what protobuf-java writes. */
class TagsTest {
    private static final int[] NUMBERS = {
        1,
        15,
        16,
        2047,
        2048,
        262_143,
        262_144,
        33_554_431,
        33_554_432,
        268_435_455,
        268_435_456,
        268_435_457,
        536_870_911
    };

    record Numbers(
            @Field(1) int a,
            @Field(15) int b,
            @Field(16) int c,
            @Field(2047) int d,
            @Field(2048) int e,
            @Field(262_143) int f,
            @Field(262_144) int g,
            @Field(33_554_431) int h,
            @Field(33_554_432) int i,
            @Field(268_435_455) int j,
            @Field(268_435_456) int k,
            @Field(268_435_457) int l,
            @Field(536_870_911) int m) {}

    record Texts(
            @Field(536_870_911) List<String> last,
            @Field(268_435_456) String middle,
            @Field(536_870_910) long other) {}

    record Pay(
            @Field(1) int fromAccount, @Field(268_435_457) int toAccount) {}

    static Stream<Codecs> codecs() {
        return Stream.of(
                Codecs.of(new Schema(LockFile.none()), Limits.STANDARD),
                Codecs.reflective(new Schema(LockFile.none()), Limits.STANDARD));
    }

    private static byte[] written(Codecs codecs, Object value) {
        ByteBuf bytes = Unpooled.buffer();
        codecs.value(value.getClass()).write(value, bytes);
        return ByteBufUtil.getBytes(bytes);
    }

    private static Object read(Codecs codecs, Class<?> type, byte[] bytes) {
        return codecs.value(type).read(Unpooled.wrappedBuffer(bytes));
    }

    @ParameterizedTest
    @MethodSource("codecs")
    void eachNumberIsWrittenAndReadAsByProtobuf(Codecs codecs) throws IOException {
        Numbers value = new Numbers(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13);
        ByteArrayOutputStream theirs = new ByteArrayOutputStream();
        CodedOutputStream out = CodedOutputStream.newInstance(theirs);
        for (int i = 0; i < NUMBERS.length; i++) {
            out.writeInt32(NUMBERS[i], i + 1);
        }
        out.flush();
        byte[] ours = written(codecs, value);
        assertThat(read(codecs, Numbers.class, ours)).isEqualTo(value);
        assertThat(read(codecs, Numbers.class, theirs.toByteArray())).isEqualTo(value);
        CodedInputStream in = CodedInputStream.newInstance(ours);
        for (int i = 0; i < NUMBERS.length; i++) {
            assertThat(in.readTag() >>> 3).isEqualTo(NUMBERS[i]);
            // the schema decides whether an int is in zigzag form
            in.readRawVarint32();
        }
        assertThat(in.isAtEnd()).isTrue();
    }

    @ParameterizedTest
    @MethodSource("codecs")
    void listsAndTextsOfLargeNumbersComeBack(Codecs codecs) {
        Texts value = new Texts(List.of("p", "", "q"), "hello", 7);
        assertThat(read(codecs, Texts.class, written(codecs, value))).isEqualTo(value);
    }

    /** One byte of a tag of five bytes would be the tag of field 1. */
    @ParameterizedTest
    @MethodSource("codecs")
    void aLargeNumberIsNotTakenForASmallOne(Codecs codecs) {
        Pay value = new Pay(100, 200);
        assertThat(read(codecs, Pay.class, written(codecs, value))).isEqualTo(value);
    }
}
