package dev.parley.transport.grpc;

import com.google.protobuf.Message;
import dev.parley.encoding.protobuf.ProtobufCodec;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Operation;
import io.grpc.MethodDescriptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ServerCalls;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * A contract's operations as gRPC methods: the descriptors that the generated stubs of its {@code .proto} would hold, with the same
 * marshallers. Immutable.
 */
record Methods(String service, Map<String, Method<?, ?, ?, ?>> byOperation) {

    /** One operation: its descriptor, and how records become messages and back. */
    record Method<Q extends Record, R extends Record, QM extends Message, RM extends Message>(
            Operation<Q, R> operation,
            MethodDescriptor<QM, RM> descriptor,
            ProtobufCodec<Q, QM> request,
            ProtobufCodec<R, RM> reply) {}

    /** {@code messages} is the service {@code parley.messages.Messages}. */
    static String serviceName(String contract) {
        return "parley." + contract + "." + contract.substring(0, 1).toUpperCase(Locale.ROOT) + contract.substring(1);
    }

    static Methods of(Contract contract) {
        Map<String, Method<?, ?, ?, ?>> methods = new LinkedHashMap<>();
        String service = serviceName(contract.name());
        for (Operation<?, ?> operation : contract.operations()) {
            methods.put(operation.name(), method(service, operation));
        }
        return new Methods(service, methods);
    }

    private static <Q extends Record, R extends Record> Method<Q, R, ?, ?> method(
            String service, Operation<Q, R> operation) {
        return method(service, operation, ProtobufCodec.of(operation.request()), ProtobufCodec.of(operation.reply()));
    }

    private static <Q extends Record, R extends Record, QM extends Message, RM extends Message>
            Method<Q, R, QM, RM> method(
                    String service,
                    Operation<Q, R> operation,
                    ProtobufCodec<Q, QM> request,
                    ProtobufCodec<R, RM> reply) {
        MethodDescriptor<QM, RM> descriptor = MethodDescriptor.<QM, RM>newBuilder()
                .setType(MethodDescriptor.MethodType.UNARY)
                .setFullMethodName(MethodDescriptor.generateFullMethodName(service, operation.name()))
                .setSampledToLocalTracing(true)
                .setRequestMarshaller(ProtoUtils.marshaller(request.prototype()))
                .setResponseMarshaller(ProtoUtils.marshaller(reply.prototype()))
                .build();
        return new Method<>(operation, descriptor, request, reply);
    }

    @SuppressWarnings("unchecked") // an operation's method has the operation's records
    <Q extends Record, R extends Record> Method<Q, R, ?, ?> method(Operation<Q, R> operation) {
        Method<?, ?, ?, ?> method = byOperation.get(operation.name());
        if (method == null) {
            throw new dev.parley.spi.CallException(
                    dev.parley.spi.CallException.Code.NOT_FOUND, "no operation " + operation.name() + " in " + service);
        }
        return (Method<Q, R, ?, ?>) method;
    }

    ServerServiceDefinition serve(Handler handler) {
        ServerServiceDefinition.Builder definition = ServerServiceDefinition.builder(service);
        byOperation.values().forEach(method -> add(definition, method, handler));
        return definition.build();
    }

    private static <Q extends Record, R extends Record, QM extends Message, RM extends Message> void add(
            ServerServiceDefinition.Builder definition, Method<Q, R, QM, RM> method, Handler handler) {
        definition.addMethod(method.descriptor(), ServerCalls.asyncUnaryCall((message, reply) -> {
            RM answer;
            try {
                Q request = method.request().toRecord().apply(message);
                answer = method.reply().toMessage().apply(handler.handle(method.operation(), request));
            } catch (RuntimeException | Error e) {
                reply.onError(Errors.toStatus(e).asRuntimeException());
                return;
            }
            reply.onNext(answer);
            reply.onCompleted();
        }));
    }
}
