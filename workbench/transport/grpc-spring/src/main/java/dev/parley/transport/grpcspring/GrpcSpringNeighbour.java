package dev.parley.transport.grpcspring;

import com.google.protobuf.Message;
import dev.parley.encoding.protobuf.ProtobufCodec;
import dev.parley.encoding.protobuf.messages.MessagesGrpc;
import dev.parley.model.BadInput;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.transport.springapp.SharedContext;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.springframework.grpc.client.GrpcChannelFactory;

/** Calls one service over a channel of its own, as the generated blocking stub does. */
final class GrpcSpringNeighbour implements Neighbour {
    private static final Map<String, MethodDescriptor<?, ?>> METHODS =
            MessagesGrpc.getServiceDescriptor().getMethods().stream()
                    .collect(Collectors.toUnmodifiableMap(
                            method -> String.valueOf(method.getBareMethodName()), Function.identity()));

    private final SharedContext clients;
    private final ManagedChannel channel;
    private final AtomicBoolean closed = new AtomicBoolean();

    GrpcSpringNeighbour(SharedContext clients, Contract contract, Location to) {
        if (!contract.name().equals("messages")) {
            throw new BadInput("contract", contract.name(), "one with a gRPC service: messages");
        }
        this.clients = clients;
        this.channel = clients.enter()
                .getBean(GrpcChannelFactory.class)
                .createChannel("static://" + to.host() + ":" + to.port());
    }

    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        return called(
                ProtobufCodec.of(operation.request()),
                ProtobufCodec.of(operation.reply()),
                operation,
                request,
                timeout);
    }

    @SuppressWarnings("unchecked") // each record has one generated message, which is the method's
    private <Q extends Record, R extends Record, A extends Message, B extends Message> R called(
            ProtobufCodec<Q, A> requests,
            ProtobufCodec<R, B> replies,
            Operation<Q, R> operation,
            Q request,
            Duration timeout) {
        MethodDescriptor<A, B> method = (MethodDescriptor<A, B>) METHODS.get(operation.name());
        if (method == null) {
            throw new CallException(Code.NOT_FOUND, "no method " + operation.name() + " in the gRPC service");
        }
        CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(timeout.toNanos(), TimeUnit.NANOSECONDS);
        try {
            return replies.toRecord()
                    .apply(ClientCalls.blockingUnaryCall(
                            channel, method, options, requests.toMessage().apply(request)));
        } catch (StatusRuntimeException e) {
            throw Errors.read(e.getStatus(), e);
        }
    }

    @Override
    public long payloadBytes(Record message) {
        return bytes(message.getClass(), message);
    }

    private static <R extends Record> long bytes(Class<R> type, Record message) {
        return ProtobufCodec.of(type).encodedBytes(type.cast(message));
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            channel.shutdownNow();
            clients.leave();
        }
    }
}
