package dev.rpcx.codec;

import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.UnknownFieldSet;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.Schema;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Fuzzes the codecs with bytes that may be a message. The generated and the reflective codec read the same value, or
 * refuse with the same text. A value that was read stays the same when it is written and read again, and protobuf-java
 * agrees. The class is public, since Jazzer requires it.
 */
public final class CodecFuzz {
    public record Chain(int value, @Nullable Chain next) {}

    private static final List<Class<?>> TYPES = List.of(
            AllTypes.Hello.class,
            AllTypes.Item.class,
            Chain.class,
            MalformedTest.Lists.class,
            MalformedTest.Texts.class,
            MalformedTest.Numbers.class,
            MalformedTest.Checked.class,
            MalformedTest.Around.class);

    private static final Schema SCHEMA = new Schema(LockFile.none());
    private static final Codecs GENERATED = Codecs.of(SCHEMA, Limits.STANDARD);
    private static final Codecs REFLECTIVE = Codecs.reflective(SCHEMA, Limits.STANDARD);
    private static final Oracle ORACLE = new Oracle();

    static {
        TYPES.forEach(type -> ORACLE.add(SCHEMA.value(type)));
    }

    private CodecFuzz() {}

    /** Is called by Jazzer. The first byte selects the type. */
    public static void fuzzerTestOneInput(byte[] bytes) {
        if (bytes.length == 0) {
            return;
        }
        Class<?> type = TYPES.get((bytes[0] & 0xFF) % TYPES.size());
        byte[] message = Arrays.copyOfRange(bytes, 1, bytes.length);
        Codec<Object> codec = GENERATED.value(type);
        Object value = null;
        String refused = null;
        try {
            value = codec.read(Unpooled.wrappedBuffer(message));
        } catch (CodecException e) {
            refused = e.getMessage();
        }
        Object other = null;
        String otherRefused = null;
        try {
            other = REFLECTIVE.value(type).read(direct(message));
        } catch (CodecException e) {
            otherRefused = e.getMessage();
        }
        if (refused == null ? otherRefused != null : !refused.equals(otherRefused)) {
            throw new AssertionError("generated: " + refused + ", reflective: " + otherRefused);
        }
        if (value != null && other != null) {
            wrote(type, codec, value, other, message);
        }
    }

    private static ByteBuf direct(byte[] bytes) {
        return Unpooled.wrappedBuffer(
                java.nio.ByteBuffer.allocateDirect(bytes.length).put(bytes).flip());
    }

    private static void wrote(Class<?> type, Codec<Object> codec, Object value, Object other, byte[] message) {
        byte[] bytes = write(codec, value);
        if (bytes == null) {
            return;
        }
        if (!Arrays.equals(bytes, write(REFLECTIVE.value(type), other))) {
            throw new AssertionError("generated and reflective read two values: " + value + ", " + other);
        }
        expectSame("written and read again", bytes, write(codec, codec.read(Unpooled.wrappedBuffer(bytes))));
        MessageType schema = SCHEMA.value(type);
        try {
            DynamicMessage ours = DynamicMessage.parseFrom(ORACLE.descriptor(schema), bytes);
            if (!ours.equals(ORACLE.message(schema, value))) {
                throw new AssertionError("protobuf-java reads " + ours + " of " + value);
            }
            if (hasMessageTwice(UnknownFieldSet.parseFrom(message), ORACLE.descriptor(schema))) {
                // Protobuf merges the two values, and RPCX takes the later one
                return;
            }
            DynamicMessage theirs = DynamicMessage.parseFrom(ORACLE.descriptor(schema), message);
            byte[] normal = theirs.toByteArray();
            expectSame("by way of protobuf-java", bytes, write(codec, codec.read(Unpooled.wrappedBuffer(normal))));
        } catch (InvalidProtocolBufferException e) {
            throw new AssertionError("protobuf-java refuses what we have read: " + value, e);
        }
    }

    private static boolean hasMessageTwice(UnknownFieldSet message, Descriptor type)
            throws InvalidProtocolBufferException {
        for (FieldDescriptor field : type.getFields()) {
            if (field.getJavaType() != FieldDescriptor.JavaType.MESSAGE) {
                continue;
            }
            List<ByteString> all = message.getField(field.getNumber()).getLengthDelimitedList();
            if (all.size() > 1 && !field.isRepeated()) {
                return true;
            }
            for (ByteString each : all) {
                if (hasMessageTwice(UnknownFieldSet.parseFrom(each), field.getMessageType())) {
                    return true;
                }
            }
        }
        return false;
    }

    private static void expectSame(String what, byte[] bytes, byte @Nullable [] others) {
        if (!Arrays.equals(bytes, others)) {
            throw new AssertionError(what + ": " + ByteBufUtil.hexDump(bytes) + ", then "
                    + (others == null ? "refused" : ByteBufUtil.hexDump(others)));
        }
    }

    /** @return null if the value cannot be written: its default values may have made it too large */
    private static byte @Nullable [] write(Codec<Object> codec, Object value) {
        ByteBuf out = Unpooled.buffer();
        try {
            codec.write(value, out);
        } catch (CodecException refused) {
            if (out.isReadable()) {
                throw new AssertionError("half a message was left behind");
            }
            return null;
        }
        return ByteBufUtil.getBytes(out);
    }
}
