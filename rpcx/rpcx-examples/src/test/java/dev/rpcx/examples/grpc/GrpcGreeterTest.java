package dev.rpcx.examples.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Method;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.exported.hello.HelloReply;
import dev.rpcx.exported.hello.HelloRequest;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import org.junit.jupiter.api.Test;

/** Calls a server of RPCX by grpc-java and the exported {@code .proto}. The guide shows this class. */
public class GrpcGreeterTest {
    @RPCXServer("greeter")
    static class Greetings {
        @Method("hello")
        String greet(String name) {
            return "Hello " + name;
        }
    }

    private static MethodDescriptor<HelloRequest, HelloReply> method(String path) {
        return MethodDescriptor.<HelloRequest, HelloReply>newBuilder()
                .setType(MethodDescriptor.MethodType.UNARY)
                .setFullMethodName(path)
                .setRequestMarshaller(ProtoUtils.marshaller(HelloRequest.getDefaultInstance()))
                .setResponseMarshaller(ProtoUtils.marshaller(HelloReply.getDefaultInstance()))
                .build();
    }

    /** Calls a server whose services stand in the package {@code dev.rpcx.exported.hello} of a {@code .proto}. */
    public static String hello(String path) {
        try (Server server = Server.builder(RegistryServer.registry(new Greetings()))
                .grpc("dev.rpcx.exported.hello")
                .build()
                .start()) {
            ManagedChannel channel = NettyChannelBuilder.forAddress("127.0.0.1", server.port())
                    .usePlaintext()
                    .build();
            try {
                HelloRequest request = HelloRequest.newBuilder().setName("Ada").build();
                return ClientCalls.blockingUnaryCall(channel, method(path), CallOptions.DEFAULT, request)
                        .getValue();
            } finally {
                channel.shutdownNow();
            }
        }
    }

    @Test
    void aClientOfGrpcIsServed() {
        assertThat(hello("dev.rpcx.exported.hello.Greeter/Hello")).isEqualTo("Hello Ada");
    }
}
