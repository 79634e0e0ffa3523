package dev.parley.encoding.protobuf;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import dev.parley.spi.CallException;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A contract's record and the generated Protobuf message that carries it. Thread-safe.
 *
 * @param record the class by which the codec is found
 * @param prototype the message's default instance, which has its parser and descriptor
 */
public record ProtobufCodec<R extends Record, M extends Message>(
        Class<R> record, M prototype, Function<R, M> toMessage, Function<M, R> toRecord) {

    private static final Map<Class<?>, ProtobufCodec<?, ?>> BY_RECORD = Stream.of(
                    MessagesConversions.CODECS,
                    JsonConversions.CODECS,
                    LecturersConversions.CODECS,
                    RecordsConversions.CODECS)
            .flatMap(List::stream)
            .collect(Collectors.toUnmodifiableMap(ProtobufCodec::record, codec -> codec));

    /** @throws CallException {@link CallException.Code#PROTOCOL} if no {@code .proto} of this module has that record */
    public static <R extends Record> ProtobufCodec<R, ?> of(Class<R> record) {
        ProtobufCodec<?, ?> codec = BY_RECORD.get(record);
        if (codec == null) {
            throw new CallException(
                    CallException.Code.PROTOCOL,
                    record.getName() + " has no Protobuf message (expected: one of a contract)");
        }
        @SuppressWarnings("unchecked") // the map is keyed by the codec's own record class
        ProtobufCodec<R, ?> sameRecord = (ProtobufCodec<R, ?>) codec;
        return sameRecord;
    }

    public byte[] encode(R value) {
        return toMessage.apply(value).toByteArray();
    }

    /** How many bytes {@link #encode} would give. */
    public int encodedBytes(R value) {
        return toMessage.apply(value).getSerializedSize();
    }

    /**
     * @throws CallException {@link CallException.Code#PROTOCOL} if the bytes are not that message, or one of its
     *     properties is missing
     */
    public R decode(byte[] bytes) {
        try {
            @SuppressWarnings("unchecked") // a message's parser gives that message
            M message = (M) prototype.getParserForType().parseFrom(bytes);
            return toRecord.apply(message);
        } catch (InvalidProtocolBufferException e) {
            throw new CallException(
                    CallException.Code.PROTOCOL, "not a " + record.getSimpleName() + ": " + e.getMessage(), e);
        }
    }
}
