package dev.parley.transport.kafka;

import dev.parley.encoding.json.JsonCodec;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Operation;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.jspecify.annotations.Nullable;

/**
 * What stands in a message: a request has headers for its operation, correlation id and reply topic, and a JSON object as value; a reply has
 * the correlation id and a JSON object, or, where the header {@code error} names a code, the error's text.
 */
final class KafkaMessage {
    /** Source: Spring for Apache Kafka, KafkaHeaders. */
    private static final String CORRELATION = "kafka_correlationId";

    private static final String REPLY_TOPIC = "kafka_replyTopic";
    private static final String OPERATION = "operation";
    private static final String ERROR = "error";

    private KafkaMessage() {}

    static ProducerRecord<byte[], byte[]> request(
            String topic, Operation<?, ?> operation, Record body, byte[] replyTopic, UUID id) {
        ProducerRecord<byte[], byte[]> message = new ProducerRecord<>(topic, JsonCodec.encode(body));
        message.headers()
                .add(OPERATION, operation.name().getBytes(StandardCharsets.UTF_8))
                .add(CORRELATION, bytes(id))
                .add(REPLY_TOPIC, replyTopic);
        return message;
    }

    /** The call that a message belongs to, null where it does not say. */
    static @Nullable UUID id(Headers headers) {
        Header id = headers.lastHeader(CORRELATION);
        if (id == null || id.value().length != 2 * Long.BYTES) {
            return null;
        }
        ByteBuffer bytes = ByteBuffer.wrap(id.value());
        return new UUID(bytes.getLong(), bytes.getLong());
    }

    private static byte[] bytes(UUID id) {
        return ByteBuffer.allocate(2 * Long.BYTES)
                .putLong(id.getMostSignificantBits())
                .putLong(id.getLeastSignificantBits())
                .array();
    }

    /** What the handler makes of a request; null for a message that does not say where its reply goes. */
    static @Nullable ProducerRecord<byte[], byte[]> answer(
            ConsumerRecord<byte[], byte[]> request, Contract contract, Handler handler) {
        String operationName = text(request.headers(), OPERATION);
        byte[] body;
        try {
            Operation<?, ?> operation = contract.operation(String.valueOf(operationName));
            body = JsonCodec.encode(handled(operation, request.value(), handler));
        } catch (RuntimeException | Error e) {
            return error(request, CallException.of(e));
        }
        return reply(request, body);
    }

    static @Nullable ProducerRecord<byte[], byte[]> error(ConsumerRecord<byte[], byte[]> request, CallException error) {
        ProducerRecord<byte[], byte[]> reply =
                reply(request, String.valueOf(error.getMessage()).getBytes(StandardCharsets.UTF_8));
        if (reply != null) {
            reply.headers().add(ERROR, error.code().name().getBytes(StandardCharsets.UTF_8));
        }
        return reply;
    }

    private static @Nullable ProducerRecord<byte[], byte[]> reply(ConsumerRecord<byte[], byte[]> request, byte[] body) {
        UUID id = id(request.headers());
        String replyTopic = text(request.headers(), REPLY_TOPIC);
        if (id == null || replyTopic == null) {
            return null;
        }
        ProducerRecord<byte[], byte[]> reply = new ProducerRecord<>(replyTopic, body);
        reply.headers().add(CORRELATION, bytes(id));
        return reply;
    }

    private static <Q extends Record, R extends Record> R handled(
            Operation<Q, R> operation, byte[] body, Handler handler) {
        return handler.handle(operation, JsonCodec.decode(body, operation.request()));
    }

    /** @throws CallException the error that the reply carries, or {@link Code#PROTOCOL} */
    static <R extends Record> R read(ConsumerRecord<byte[], byte[]> reply, Class<R> type) {
        String error = text(reply.headers(), ERROR);
        if (error == null) {
            return JsonCodec.decode(reply.value(), type);
        }
        String message = new String(reply.value(), StandardCharsets.UTF_8);
        for (Code code : Code.values()) {
            if (code.name().equals(error)) {
                throw new CallException(code, message);
            }
        }
        throw new CallException(Code.REMOTE_ERROR, error + ": " + message);
    }

    private static @Nullable String text(Headers headers, String name) {
        Header header = headers.lastHeader(name);
        return header == null ? null : new String(header.value(), StandardCharsets.UTF_8);
    }
}
