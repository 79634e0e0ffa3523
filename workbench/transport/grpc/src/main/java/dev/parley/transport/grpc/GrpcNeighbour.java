package dev.parley.transport.grpc;

import com.google.protobuf.Message;
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
import java.util.concurrent.CompletableFuture;
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
                .maxInboundMessageSize(GrpcTransport.MESSAGE_BYTES_MOST);
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
        ClientCalls.asyncUnaryCall(call, method.request().toMessage().apply(request), new StreamObserver<>() {
            @Nullable
            private RM message;

            @Override
            public void onNext(RM value) {
                message = value;
            }

            @Override
            public void onError(Throwable thrown) {
                reply.completeExceptionally(Errors.toCall(thrown));
            }

            @Override
            public void onCompleted() {
                RM received = message;
                if (received == null) {
                    reply.completeExceptionally(
                            new CallException(CallException.Code.PROTOCOL, "the call ended without a reply"));
                    return;
                }
                try {
                    reply.complete(method.reply().toRecord().apply(received));
                } catch (RuntimeException e) {
                    reply.completeExceptionally(CallException.of(e));
                }
            }
        });
        return reply;
    }

    @Override
    public long payloadBytes(Record message) {
        return encodedBytes(message, message.getClass());
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
