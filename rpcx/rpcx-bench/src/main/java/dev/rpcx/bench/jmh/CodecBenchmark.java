package dev.rpcx.bench.jmh;

import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.MessageLite;
import com.google.protobuf.StringValue;
import dev.rpcx.bench.ProtobufRows;
import dev.rpcx.bench.Row;
import dev.rpcx.bench.proto.Rows;
import dev.rpcx.codec.Codec;
import dev.rpcx.codec.Codecs;
import dev.rpcx.codec.Limits;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Measures the conversion of records to bytes and back: by RPCX's generated codec, by its reflective fallback, and by
 * protobuf-java with the conversions that a service with records of its own needs around it. A row has one value of
 * each type; a count of 0 stands for the string "HelloWorld".
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(2)
public class CodecBenchmark {
    private static final String HELLO = "HelloWorld";

    /** Message that holds the rows, since a list is not a message of its own. */
    public record Table(List<Row> rows) {}

    /** Message that holds the string. */
    public record Hello(String text) {}

    @Param({"0", "100", "1000"})
    private int rows;

    private Object value = HELLO;
    private Codec<Object> generated = codec(Codecs.standard(CodecBenchmark.class));
    private Codec<Object> reflective = generated;
    private ByteBuf bytes = Unpooled.EMPTY_BUFFER;
    private byte[] protobufBytes = {};
    private ByteBuf out = Unpooled.EMPTY_BUFFER;
    private byte[] protobufOut = {};

    private Codec<Object> codec(Codecs codecs) {
        return codecs.value(rows == 0 ? Hello.class : Table.class);
    }

    @Setup
    public void setUp() throws IOException {
        value = rows == 0 ? new Hello(HELLO) : new Table(Row.sample(rows));
        generated = codec(Codecs.standard(CodecBenchmark.class));
        reflective =
                codec(Codecs.reflective(Codecs.standard(CodecBenchmark.class).schema(), Limits.STANDARD));
        out = Unpooled.buffer(1 << 20);
        generated.write(value, out);
        bytes = out.copy();
        protobufOut = new byte[1 << 20];
        protobufBytes = toProtobuf().toByteArray();
        if (!generated.read(bytes.duplicate()).equals(value) || !fromProtobuf().equals(value)) {
            throw new IllegalStateException("what comes back is not what was written");
        }
    }

    private MessageLite toProtobuf() {
        return value instanceof Table table
                ? ProtobufRows.toMessage(table.rows())
                : StringValue.of(((Hello) value).text());
    }

    private Object fromProtobuf() throws InvalidProtocolBufferException {
        return rows == 0
                ? new Hello(StringValue.parseFrom(protobufBytes).getValue())
                : new Table(ProtobufRows.fromMessage(Rows.parseFrom(protobufBytes)));
    }

    @Benchmark
    public ByteBuf writeGenerated() {
        generated.write(value, out.clear());
        return out;
    }

    @Benchmark
    public ByteBuf writeReflective() {
        reflective.write(value, out.clear());
        return out;
    }

    @Benchmark
    public byte[] writeProtobufJava() throws IOException {
        toProtobuf().writeTo(CodedOutputStream.newInstance(protobufOut));
        return protobufOut;
    }

    @Benchmark
    public Object readGenerated() {
        return generated.read(bytes.duplicate());
    }

    @Benchmark
    public Object readReflective() {
        return reflective.read(bytes.duplicate());
    }

    @Benchmark
    public Object readProtobufJava() throws IOException {
        return fromProtobuf();
    }
}
