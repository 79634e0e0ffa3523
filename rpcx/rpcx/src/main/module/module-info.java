/**
 * RPCX: remote calls by annotated interfaces. Users see the exported packages; types of messages stand in packages that
 * are open to this module, or are public in exported ones.
 */
module dev.rpcx {
    requires transitive io.netty.buffer;
    requires io.netty.codec;
    requires io.netty.codec.dns;
    requires io.netty.common;
    requires io.netty.handler;
    requires io.netty.resolver;
    requires io.netty.resolver.dns;
    requires io.netty.transport;
    requires io.netty.transport.classes.epoll;
    requires io.netty.transport.unix.common;
    requires java.compiler;
    requires java.management;
    requires jdk.management;
    requires jdk.net;
    requires static com.google.protobuf;
    requires static org.jspecify;

    exports dev.rpcx;
    exports dev.rpcx.codec;
    exports dev.rpcx.schema;
    exports dev.rpcx.testing;
    exports dev.rpcx.internal to
            dev.rpcx.grpc;
    exports dev.rpcx.internal.ledger to
            dev.rpcx.grpc;
    exports dev.rpcx.internal.schema to
            dev.rpcx.grpc;
    exports dev.rpcx.internal.server to
            dev.rpcx.grpc;
    exports dev.rpcx.internal.wire to
            dev.rpcx.grpc;

    uses dev.rpcx.internal.server.GrpcProvider;

    provides javax.annotation.processing.Processor with
            dev.rpcx.processor.ServiceProcessor;
}
