package dev.parley.transport.grpc;

import com.google.protobuf.Message;
import dev.parley.encoding.protobuf.Chunks;
import dev.parley.encoding.protobuf.ProtobufCodec;
import dev.parley.spi.CallException;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Operation;
import io.grpc.MethodDescriptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/**
 * A contract's operations, on records or on generated messages, as gRPC methods: the descriptors that the generated
 * stubs of its {@code .proto} would hold, with the same marshallers. Immutable.
 */
record Methods(String service, Map<String, Method<?, ?, ?, ?>> byOperation) {

    /**
     * One operation: its descriptor, and how records become messages and back.
     *
     * @param sent how a request is streamed; empty for one that is a single message
     * @param received how a reply is streamed
     */
    record Method<Q extends Record, R extends Record, QM extends Message, RM extends Message>(
            Operation<Q, R> operation,
            MethodDescriptor<QM, RM> descriptor,
            ProtobufCodec<Q, QM> request,
            ProtobufCodec<R, RM> reply,
            Optional<Chunks<QM>> sent,
            Optional<Chunks<RM>> received) {
        boolean isUnary() {
            return sent.isEmpty() && received.isEmpty();
        }

        /** A request's messages. */
        List<QM> messages(Q value) {
            QM whole = request.toMessage().apply(value);
            return sent.map(chunks -> chunks.split(whole)).orElseGet(() -> List.of(whole));
        }

        /** A reply's messages. */
        List<RM> replies(R value) {
            RM whole = reply.toMessage().apply(value);
            return received.map(chunks -> chunks.split(whole)).orElseGet(() -> List.of(whole));
        }
    }

    /** {@code messages} is the service {@code parley.messages.Messages}. */
    static String serviceName(String contract) {
        return "parley." + contract + "." + contract.substring(0, 1).toUpperCase(Locale.ROOT) + contract.substring(1);
    }

    static Methods of(Contract contract) {
        Map<String, Method<?, ?, ?, ?>> methods = new LinkedHashMap<>();
        String service = serviceName(contract.name());
        for (Operation<?, ?> operation : contract.operations()) {
            methods.put(operation.name(), method(contract.name(), service, operation));
        }
        return new Methods(service, methods);
    }

    private static <Q extends Record, R extends Record> Method<Q, R, ?, ?> method(
            String contract, String service, Operation<Q, R> operation) {
        return Own.records(contract, operation)
                .<Method<Q, R, ?, ?>>map(records -> own(service, operation, records))
                .orElseGet(() -> method(
                        service,
                        operation,
                        ProtobufCodec.of(operation.request()),
                        ProtobufCodec.of(operation.reply())));
    }

    @SuppressWarnings("unchecked") // the operation's request and reply are Own, and hold what the records' messages are
    private static <Q extends Record, R extends Record> Method<Q, R, ?, ?> own(
            String service, Operation<Q, R> operation, Operation<?, ?> records) {
        return method(
                service,
                operation,
                (ProtobufCodec<Q, ?>) Own.codec(ProtobufCodec.of(records.request())),
                (ProtobufCodec<R, ?>) Own.codec(ProtobufCodec.of(records.reply())));
    }

    private static <Q extends Record, R extends Record, QM extends Message, RM extends Message>
            Method<Q, R, QM, RM> method(
                    String service,
                    Operation<Q, R> operation,
                    ProtobufCodec<Q, QM> request,
                    ProtobufCodec<R, RM> reply) {
        Optional<Chunks<QM>> sent = Chunks.of(request);
        Optional<Chunks<RM>> received = Chunks.of(reply);
        MethodDescriptor<QM, RM> descriptor = MethodDescriptor.<QM, RM>newBuilder()
                .setType(
                        sent.isPresent()
                                ? MethodDescriptor.MethodType.CLIENT_STREAMING
                                : received.isPresent()
                                        ? MethodDescriptor.MethodType.SERVER_STREAMING
                                        : MethodDescriptor.MethodType.UNARY)
                .setFullMethodName(MethodDescriptor.generateFullMethodName(service, operation.name()))
                .setSampledToLocalTracing(true)
                .setRequestMarshaller(ProtoUtils.marshaller(request.prototype()))
                .setResponseMarshaller(ProtoUtils.marshaller(reply.prototype()))
                .build();
        return new Method<>(operation, descriptor, request, reply, sent, received);
    }

    @SuppressWarnings("unchecked") // an operation's method has the operation's records
    <Q extends Record, R extends Record> Method<Q, R, ?, ?> method(Operation<Q, R> operation) {
        Method<?, ?, ?, ?> method = byOperation.get(operation.name());
        if (method == null) {
            throw new CallException(
                    CallException.Code.NOT_FOUND, "no operation " + operation.name() + " in " + service);
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
        definition.addMethod(
                method.descriptor(),
                method.sent().isPresent()
                        ? ServerCalls.asyncClientStreamingCall(
                                reply -> new Upload<>(method, method.sent().get(), handler, reply))
                        : method.received().isPresent()
                                ? ServerCalls.asyncServerStreamingCall(
                                        (message, reply) -> answer(method, handler, message, reply))
                                : ServerCalls.asyncUnaryCall(
                                        (message, reply) -> answer(method, handler, message, reply)));
    }

    private static <Q extends Record, R extends Record, QM extends Message, RM extends Message> void answer(
            Method<Q, R, QM, RM> method, Handler handler, QM message, StreamObserver<RM> reply) {
        List<RM> answer;
        try {
            Q request = method.request().toRecord().apply(message);
            answer = method.replies(handler.handle(method.operation(), request));
        } catch (RuntimeException | Error e) {
            reply.onError(Errors.toStatus(e).asRuntimeException());
            return;
        }
        answer.forEach(reply::onNext);
        reply.onCompleted();
    }

    /** A request under way, piece by piece. Called by one thread at a time. */
    private static final class Upload<Q extends Record, R extends Record, QM extends Message, RM extends Message>
            implements StreamObserver<QM> {
        private final Method<Q, R, QM, RM> method;
        private final Handler handler;
        private final StreamObserver<RM> reply;
        private final Chunks.Joining<QM> joining;
        private boolean isRefused;

        Upload(Method<Q, R, QM, RM> method, Chunks<QM> chunks, Handler handler, StreamObserver<RM> reply) {
            this.method = method;
            this.handler = handler;
            this.reply = reply;
            this.joining = new Chunks.Joining<>(chunks, GrpcTransport.MAX_MESSAGE_BYTES);
        }

        @Override
        public void onNext(QM piece) {
            if (isRefused) {
                return;
            }
            try {
                joining.add(piece);
            } catch (CallException e) {
                isRefused = true;
                reply.onError(Errors.toStatus(e).asRuntimeException());
            }
        }

        @Override
        public void onError(Throwable cancelled) {
            // the caller is gone with half a content: nothing of it is handled
        }

        @Override
        public void onCompleted() {
            if (isRefused) {
                return;
            }
            QM whole;
            try {
                whole = joining.whole();
            } catch (CallException e) {
                reply.onError(Errors.toStatus(e).asRuntimeException());
                return;
            }
            answer(method, handler, whole, reply);
        }
    }
}
