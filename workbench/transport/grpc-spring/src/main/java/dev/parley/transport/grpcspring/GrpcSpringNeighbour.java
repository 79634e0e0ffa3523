package dev.parley.transport.grpcspring;

import com.google.protobuf.Message;
import dev.parley.encoding.protobuf.Chunks;
import dev.parley.encoding.protobuf.ProtobufCodec;
import dev.parley.encoding.protobuf.json.JsonGrpc;
import dev.parley.encoding.protobuf.lecturers.LecturersGrpc;
import dev.parley.encoding.protobuf.messages.MessagesGrpc;
import dev.parley.encoding.protobuf.records.RecordsGrpc;
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
import io.grpc.ServiceDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.springframework.grpc.client.GrpcChannelFactory;

/** Calls one service over a channel of its own, as the generated blocking stub does. */
final class GrpcSpringNeighbour implements Neighbour {
    private static final long MAX_STREAM_BYTES = 64L << 20;

    private static final Map<String, ServiceDescriptor> SERVICES = Map.of(
            "messages", MessagesGrpc.getServiceDescriptor(),
            "json", JsonGrpc.getServiceDescriptor(),
            "lecturers", LecturersGrpc.getServiceDescriptor(),
            "records", RecordsGrpc.getServiceDescriptor());

    private final Map<String, MethodDescriptor<?, ?>> methods;
    private final SharedContext clients;
    private final ManagedChannel channel;
    private final AtomicBoolean closed = new AtomicBoolean();

    GrpcSpringNeighbour(SharedContext clients, Contract contract, Location to) {
        ServiceDescriptor service = SERVICES.get(contract.name());
        if (service == null) {
            throw new BadInput(
                    "contract", contract.name(), "one with a gRPC service: messages, json, lecturers, records");
        }
        this.methods = service.getMethods().stream()
                .collect(Collectors.toUnmodifiableMap(
                        method -> String.valueOf(method.getBareMethodName()), Function.identity()));
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
        MethodDescriptor<A, B> method = (MethodDescriptor<A, B>) methods.get(operation.name());
        if (method == null) {
            throw new CallException(Code.NOT_FOUND, "no method " + operation.name() + " in the gRPC service");
        }
        CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(timeout.toNanos(), TimeUnit.NANOSECONDS);
        try {
            A message = requests.toMessage().apply(request);
            return replies.toRecord()
                    .apply(
                            switch (method.getType()) {
                                case CLIENT_STREAMING ->
                                    sent(
                                            method,
                                            options,
                                            Chunks.of(requests).orElseThrow().split(message));
                                case SERVER_STREAMING ->
                                    received(
                                            method,
                                            options,
                                            message,
                                            Chunks.of(replies).orElseThrow());
                                default -> ClientCalls.blockingUnaryCall(channel, method, options, message);
                            });
        } catch (StatusRuntimeException e) {
            throw Errors.read(e.getStatus(), e);
        }
    }

    /** The stub that waits has no method for a stream of requests, so the one that does not is waited for. */
    private <A extends Message, B extends Message> B sent(
            MethodDescriptor<A, B> method, CallOptions options, List<A> pieces) {
        CompletableFuture<B> reply = new CompletableFuture<>();
        StreamObserver<A> sending =
                ClientCalls.asyncClientStreamingCall(channel.newCall(method, options), new StreamObserver<>() {
                    @Override
                    public void onNext(B value) {
                        reply.complete(value);
                    }

                    @Override
                    public void onError(Throwable thrown) {
                        reply.completeExceptionally(thrown);
                    }

                    @Override
                    public void onCompleted() {
                        reply.completeExceptionally(new CallException(Code.PROTOCOL, "the call ended without a reply"));
                    }
                });
        pieces.forEach(sending::onNext);
        sending.onCompleted();
        try {
            return reply.get();
        } catch (ExecutionException e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            throw cause instanceof StatusRuntimeException status
                    ? Errors.read(status.getStatus(), status)
                    : CallException.of(cause);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CallException(Code.UNAVAILABLE, "interrupted while waiting for a stream", e);
        }
    }

    private <A extends Message, B extends Message> B received(
            MethodDescriptor<A, B> method, CallOptions options, A message, Chunks<B> chunks) {
        Chunks.Joining<B> joining = new Chunks.Joining<>(chunks, MAX_STREAM_BYTES);
        ClientCalls.blockingServerStreamingCall(channel, method, options, message)
                .forEachRemaining(joining::add);
        return joining.whole();
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
