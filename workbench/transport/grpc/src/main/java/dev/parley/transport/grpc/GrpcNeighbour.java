package dev.parley.transport.grpc;

import com.google.protobuf.Message;
import dev.parley.encoding.protobuf.Chunks;
import dev.parley.encoding.protobuf.ProtobufCodec;
import dev.parley.spi.CallException;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.transport.grpc.Methods.Method;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** A neighbour behind one channel, called as the generated blocking and asynchronous stubs would. */
final class GrpcNeighbour implements Neighbour {
    private final Methods methods;
    private final ManagedChannel channel;

    GrpcNeighbour(Methods methods, Location to, boolean isTuned) {
        this.methods = methods;
        NettyChannelBuilder builder = NettyChannelBuilder.forAddress(to.host(), to.port())
                .usePlaintext()
                .maxInboundMessageSize(GrpcTransport.MAX_MESSAGE_BYTES);
        if (isTuned) {
            builder.flowControlWindow(GrpcTransport.TUNED_WINDOW_BYTES);
        }
        this.channel = builder.build();
    }

    private static CallOptions within(Duration timeout) {
        return CallOptions.DEFAULT.withDeadlineAfter(timeout.toNanos(), TimeUnit.NANOSECONDS);
    }

    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        return call(methods.method(operation), request, timeout);
    }

    private <Q extends Record, R extends Record, QM extends Message, RM extends Message> R call(
            Method<Q, R, QM, RM> method, Q request, Duration timeout) {
        if (!method.isUnary()) {
            return streamed(method, request, timeout);
        }
        try {
            return method.reply()
                    .toRecord()
                    .apply(ClientCalls.blockingUnaryCall(
                            channel,
                            method.descriptor(),
                            within(timeout),
                            method.request().toMessage().apply(request)));
        } catch (StatusRuntimeException e) {
            throw Errors.toCall(e);
        }
    }

    @Override
    public <Q extends Record, R extends Record> CompletableFuture<R> send(
            Operation<Q, R> operation, Q request, Duration timeout) {
        return send(methods.method(operation), request, timeout);
    }

    private <Q extends Record, R extends Record, QM extends Message, RM extends Message> CompletableFuture<R> send(
            Method<Q, R, QM, RM> method, Q request, Duration timeout) {
        CompletableFuture<R> reply = new CompletableFuture<>();
        ClientCall<QM, RM> call = channel.newCall(method.descriptor(), within(timeout));
        Answer<R, RM> answer = new Answer<>(method, reply);
        if (method.sent().isPresent()) {
            StreamObserver<QM> sending = ClientCalls.asyncClientStreamingCall(call, answer);
            method.messages(request).forEach(sending::onNext);
            sending.onCompleted();
        } else if (method.received().isPresent()) {
            ClientCalls.asyncServerStreamingCall(
                    call, method.request().toMessage().apply(request), answer);
        } else {
            ClientCalls.asyncUnaryCall(call, method.request().toMessage().apply(request), answer);
        }
        return reply;
    }

    /** The generated stub that waits has no method for a stream of requests. */
    private <Q extends Record, R extends Record, QM extends Message, RM extends Message> R streamed(
            Method<Q, R, QM, RM> method, Q request, Duration timeout) {
        try {
            return send(method, request, timeout).get();
        } catch (ExecutionException e) {
            throw CallException.of(e.getCause() == null ? e : e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CallException(CallException.Code.UNAVAILABLE, "interrupted while waiting for a stream", e);
        }
    }

    /** A reply, of one message or of several. */
    private static final class Answer<R extends Record, RM extends Message> implements StreamObserver<RM> {
        private final Method<?, R, ?, RM> method;
        private final CompletableFuture<R> reply;
        private final Optional<Chunks.Joining<RM>> joining;

        @Nullable
        private RM message;

        Answer(Method<?, R, ?, RM> method, CompletableFuture<R> reply) {
            this.method = method;
            this.reply = reply;
            this.joining =
                    method.received().map(chunks -> new Chunks.Joining<>(chunks, GrpcTransport.MAX_MESSAGE_BYTES));
        }

        @Override
        public void onNext(RM value) {
            if (joining.isPresent()) {
                joining.get().add(value);
            } else {
                message = value;
            }
        }

        @Override
        public void onError(Throwable thrown) {
            reply.completeExceptionally(thrown instanceof CallException refused ? refused : Errors.toCall(thrown));
        }

        @Override
        public void onCompleted() {
            try {
                RM received = joining.isPresent() ? joining.get().whole() : message;
                if (received == null) {
                    throw new CallException(CallException.Code.PROTOCOL, "the call ended without a reply");
                }
                reply.complete(method.reply().toRecord().apply(received));
            } catch (RuntimeException e) {
                reply.completeExceptionally(CallException.of(e));
            }
        }
    }

    @Override
    public long payloadBytes(Record message) {
        return message instanceof Own<?>(Message own)
                ? own.getSerializedSize()
                : encodedBytes(message, message.getClass());
    }

    private static <R extends Record> long encodedBytes(Record message, Class<R> type) {
        return ProtobufCodec.of(type).encodedBytes(type.cast(message));
    }

    @Override
    public void close() {
        channel.shutdownNow();
        try {
            channel.awaitTermination(5, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
