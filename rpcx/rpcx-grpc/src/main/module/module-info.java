/**
 * Servers of RPCX that also speak gRPC. RPCX finds this module by the service that it provides, and users need no type
 * of it.
 */
module dev.rpcx.grpc {
    requires dev.rpcx;
    requires io.netty.buffer;
    requires io.netty.codec;
    requires io.netty.codec.http2;
    requires io.netty.common;
    requires io.netty.transport;
    requires static org.jspecify;

    opens dev.rpcx.grpc to
            dev.rpcx;

    provides dev.rpcx.internal.server.GrpcProvider with
            dev.rpcx.grpc.GrpcWires;
}
