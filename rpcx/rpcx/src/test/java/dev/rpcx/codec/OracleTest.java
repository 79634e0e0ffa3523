package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.DynamicMessage;
import dev.rpcx.LongForm;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Schema;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.lang.reflect.Modifier;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests random schemas and values against protobuf-java. */
class OracleTest {
    private static final int RECORDS = 150;
    private static final int VALUES = 12;

    static LongStream seeds() {
        return LongStream.rangeClosed(1, LongForm.of(2, 4));
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void bytesAreThoseOfProtobufBothWays(long seed) throws Exception {
        List<Class<?>> records = RandomTypes.records(seed, RECORDS);
        Schema schema = new Schema(LockFile.none());
        Oracle oracle = new Oracle();
        records.forEach(record -> oracle.add(schema.value(record)));
        Codecs generated = Codecs.of(schema, Limits.STANDARD);
        Codecs reflective = Codecs.reflective(schema, Limits.STANDARD);
        RandomValues values = new RandomValues(seed);
        ByteBuf heap = Unpooled.buffer();
        ByteBuf direct = Unpooled.directBuffer();
        for (Class<?> record : records) {
            // the records are in a loader of their own, where generated code can reach only what is not private
            assertThat(generated.isGenerated(record)).isEqualTo(!Modifier.isPrivate(record.getModifiers()));
            MessageType type = schema.value(record);
            for (int i = 0; i < VALUES; i++) {
                Object value = values.message(type, 0);
                DynamicMessage expected = oracle.message(type, value);
                byte[] bytes = expected.toByteArray();
                generated.value(record).write(value, heap.clear());
                assertThat(ByteBufUtil.getBytes(heap))
                        .as("seed %s, %s", seed, value)
                        .isEqualTo(bytes);
                reflective.value(record).write(value, direct.clear());
                assertThat(ByteBufUtil.getBytes(direct)).isEqualTo(bytes);
                Object back = generated.value(record).read(direct);
                assertThat(oracle.message(type, back)).isEqualTo(expected);
                Object reflected = reflective.value(record).read(heap);
                assertThat(oracle.message(type, reflected)).isEqualTo(expected);
            }
        }
        direct.release();
    }
}
