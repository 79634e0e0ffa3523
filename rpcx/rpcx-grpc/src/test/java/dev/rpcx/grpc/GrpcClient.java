package dev.rpcx.grpc;

import static org.awaitility.Awaitility.await;

import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.EmptyProto;
import dev.rpcx.internal.call.PublishedMethod;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.ProtoFile;
import dev.rpcx.internal.schema.Schema;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

/** A client of grpc-java that calls the service {@code counter} by the {@code .proto} that RPCX exports. */
final class GrpcClient implements AutoCloseable {
    static final String PACKAGE = "com.acme.count";

    private static final Descriptors.FileDescriptor FILE = file();

    final ManagedChannel channel;

    /** Headers and trailers of the last call that was made by {@link #call(Metadata, String, Object...)}. */
    final AtomicReference<Metadata> headers = new AtomicReference<>();

    final AtomicReference<Metadata> trailers = new AtomicReference<>();

    GrpcClient(int port) {
        this(NettyChannelBuilder.forAddress("127.0.0.1", port).usePlaintext());
    }

    GrpcClient(NettyChannelBuilder builder) {
        channel = builder.build();
    }

    private static Descriptors.FileDescriptor file() {
        Schema schema = new Schema(LockFile.none());
        List<ProtoFile.Rpc> rpcs = PublishedMethod.of(Counter.class).stream()
                .map(each -> each.rpc(schema))
                .toList();
        FileDescriptorProto proto =
                new ProtoFile(PACKAGE).service("counter", rpcs).descriptor();
        try {
            return Descriptors.FileDescriptor.buildFrom(
                    proto, new Descriptors.FileDescriptor[] {EmptyProto.getDescriptor()});
        } catch (Descriptors.DescriptorValidationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Descriptors.MethodDescriptor described(String name) {
        return FILE.findServiceByName("Counter").findMethodByName(name);
    }

    /** Returns the method of the exported service with this name, such as {@code Hello}. */
    static MethodDescriptor<DynamicMessage, DynamicMessage> method(String name) {
        Descriptors.MethodDescriptor method = described(name);
        MethodDescriptor.MethodType type = method.isClientStreaming()
                ? method.isServerStreaming()
                        ? MethodDescriptor.MethodType.BIDI_STREAMING
                        : MethodDescriptor.MethodType.CLIENT_STREAMING
                : method.isServerStreaming()
                        ? MethodDescriptor.MethodType.SERVER_STREAMING
                        : MethodDescriptor.MethodType.UNARY;
        return MethodDescriptor.<DynamicMessage, DynamicMessage>newBuilder()
                .setType(type)
                .setFullMethodName(MethodDescriptor.generateFullMethodName(PACKAGE + ".Counter", name))
                .setRequestMarshaller(ProtoUtils.marshaller(DynamicMessage.getDefaultInstance(method.getInputType())))
                .setResponseMarshaller(ProtoUtils.marshaller(DynamicMessage.getDefaultInstance(method.getOutputType())))
                .build();
    }

    /** Returns a request of a method, whose fields 1, 2 and so on have these values. */
    static DynamicMessage request(String name, Object... values) {
        Descriptors.Descriptor type = described(name).getInputType();
        DynamicMessage.Builder request = DynamicMessage.newBuilder(type);
        for (int i = 0; i < values.length; i++) {
            request.setField(type.findFieldByNumber(i + 1), values[i]);
        }
        return request.build();
    }

    /** Returns field 1 of a reply or an item. */
    static Object value(DynamicMessage message) {
        return message.getField(message.getDescriptorForType().findFieldByNumber(1));
    }

    Object call(String name, Object... values) {
        return value(reply(CallOptions.DEFAULT, name, values));
    }

    DynamicMessage reply(CallOptions options, String name, Object... values) {
        return ClientCalls.blockingUnaryCall(channel, method(name), options, request(name, values));
    }

    /** Calls with metadata, and keeps the headers and trailers of the reply. */
    Object call(Metadata metadata, String name, Object... values) {
        return value(ClientCalls.blockingUnaryCall(
                ClientInterceptors.intercept(
                        channel,
                        MetadataUtils.newAttachHeadersInterceptor(metadata),
                        MetadataUtils.newCaptureMetadataInterceptor(headers, trailers)),
                method(name),
                CallOptions.DEFAULT,
                request(name, values)));
    }

    Iterator<DynamicMessage> items(CallOptions options, String name, Object... values) {
        return ClientCalls.blockingServerStreamingCall(channel, method(name), options, request(name, values));
    }

    ClientCall<DynamicMessage, DynamicMessage> begin(String name) {
        return channel.newCall(method(name), CallOptions.DEFAULT);
    }

    @Override
    public void close() {
        channel.shutdownNow();
        await().until(channel::isTerminated);
    }
}
