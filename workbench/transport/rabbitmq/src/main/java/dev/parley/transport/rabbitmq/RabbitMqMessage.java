package dev.parley.transport.rabbitmq;

import com.rabbitmq.client.AMQP.BasicProperties;
import dev.parley.encoding.json.JsonCodec;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Operation;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * What stands in a message: a request has its operation in the property {@code type} and a JSON object as body; a reply has a JSON object,
 * or, where the header {@code error} names a code, the error's text.
 */
record RabbitMqMessage(BasicProperties properties, byte[] body) {
    private static final String JSON = "application/json";
    private static final String ERROR = "error";

    static RabbitMqMessage request(Operation<?, ?> operation, Record body, String replyTo, String correlationId) {
        return new RabbitMqMessage(
                new BasicProperties.Builder()
                        .contentType(JSON)
                        .type(operation.name())
                        .replyTo(replyTo)
                        .correlationId(correlationId)
                        .build(),
                JsonCodec.encode(body));
    }

    /** What the handler makes of this request: always a reply, since an error is one too. */
    RabbitMqMessage answered(Contract contract, Handler handler) {
        try {
            Operation<?, ?> operation = contract.operation(String.valueOf(properties.getType()));
            return new RabbitMqMessage(
                    new BasicProperties.Builder()
                            .contentType(JSON)
                            .correlationId(properties.getCorrelationId())
                            .build(),
                    JsonCodec.encode(handled(operation, handler)));
        } catch (RuntimeException | Error e) {
            CallException error = CallException.of(e);
            return new RabbitMqMessage(
                    new BasicProperties.Builder()
                            .contentType("text/plain")
                            .correlationId(properties.getCorrelationId())
                            .headers(Map.of(ERROR, error.code().name()))
                            .build(),
                    String.valueOf(error.getMessage()).getBytes(StandardCharsets.UTF_8));
        }
    }

    private <Q extends Record, R extends Record> R handled(Operation<Q, R> operation, Handler handler) {
        return handler.handle(operation, JsonCodec.decode(body, operation.request()));
    }

    /** @throws CallException the error that this reply carries, or {@link Code#PROTOCOL} */
    <R extends Record> R reply(Class<R> type) {
        Object error =
                properties.getHeaders() == null ? null : properties.getHeaders().get(ERROR);
        if (error == null) {
            return JsonCodec.decode(body, type);
        }
        String text = new String(body, StandardCharsets.UTF_8);
        for (Code code : Code.values()) {
            if (code.name().equals(error.toString())) {
                throw new CallException(code, text);
            }
        }
        throw new CallException(Code.REMOTE_ERROR, error + ": " + text);
    }
}
