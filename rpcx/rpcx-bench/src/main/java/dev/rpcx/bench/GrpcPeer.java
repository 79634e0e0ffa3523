package dev.rpcx.bench;

import dev.rpcx.bench.proto.EchoGrpc;
import dev.rpcx.bench.proto.Rows;
import dev.rpcx.bench.proto.Text;
import io.grpc.ManagedChannel;
import io.grpc.Server;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.StreamObserver;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Peer that calls with grpc-java, with generated stubs and one channel, as in its basics tutorial. {@code grpc-direct}
 * runs callbacks and handlers on the event loop, with directExecutor on both sides. {@code grpc-channel-per-call} opens
 * a channel for each call, as the hello-world example does for its only call.
 */
record GrpcPeer(String name, boolean direct, boolean channelPerCall) implements Peer {

    @Override
    public AutoCloseable serve(int port) throws Exception {
        NettyServerBuilder builder = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", port))
                .addService(new Echo());
        if (direct) {
            builder.directExecutor();
        }
        Server server = builder.build().start();
        return server::shutdownNow;
    }

    @Override
    public boolean isAsynchronous() {
        return !channelPerCall;
    }

    @Override
    public Caller connect(int port) {
        return channelPerCall ? new PerCall(port) : new Shared(channel(port));
    }

    private ManagedChannel channel(int port) {
        NettyChannelBuilder builder =
                NettyChannelBuilder.forAddress("127.0.0.1", port).usePlaintext();
        if (direct) {
            builder.directExecutor();
        }
        return builder.build();
    }

    private static final class Echo extends EchoGrpc.EchoImplBase {
        @Override
        public void hello(Text request, StreamObserver<Text> reply) {
            reply.onNext(Text.newBuilder().setText(request.getText()).build());
            reply.onCompleted();
        }

        @Override
        public void records(Rows request, StreamObserver<Rows> reply) {
            // a handler works on records of its own, so the rows are converted to records and back
            reply.onNext(ProtobufRows.toMessage(ProtobufRows.fromMessage(request)));
            reply.onCompleted();
        }
    }

    private record Shared(ManagedChannel channel, EchoGrpc.EchoBlockingStub blocking, EchoGrpc.EchoStub async)
            implements Caller {
        Shared(ManagedChannel channel) {
            this(channel, EchoGrpc.newBlockingStub(channel), EchoGrpc.newStub(channel));
        }

        @Override
        public String hello(String text) {
            return blocking.hello(Text.newBuilder().setText(text).build()).getText();
        }

        @Override
        public void hello(String text, BiConsumer<@Nullable String, @Nullable Throwable> callback) {
            async.hello(Text.newBuilder().setText(text).build(), new StreamObserver<>() {
                @Nullable
                private String reply;

                @Override
                public void onNext(Text value) {
                    reply = value.getText();
                }

                @Override
                public void onError(Throwable t) {
                    callback.accept(null, t);
                }

                @Override
                public void onCompleted() {
                    callback.accept(reply, null);
                }
            });
        }

        @Override
        public List<Row> records(List<Row> rows) {
            return ProtobufRows.fromMessage(blocking.records(ProtobufRows.toMessage(rows)));
        }

        @Override
        public void close() {
            channel.shutdownNow();
        }
    }

    private final class PerCall implements Caller {
        private final int port;

        PerCall(int port) {
            this.port = port;
        }

        @Override
        public String hello(String text) throws InterruptedException {
            ManagedChannel channel = channel(port);
            try {
                return EchoGrpc.newBlockingStub(channel)
                        .hello(Text.newBuilder().setText(text).build())
                        .getText();
            } finally {
                channel.shutdownNow().awaitTermination(5, TimeUnit.SECONDS);
            }
        }

        @Override
        public void close() {}
    }
}
