/**
 * gRPC: grpc-java over Netty with generated Protobuf messages.
 *
 * <p>Starting point: {@link dev.parley.transport.grpc.GrpcProvider}. Handlers run on the server's executor, replies arrive on the channel's.
 * Never imports another transport.
 */
@NullMarked
package dev.parley.transport.grpc;

import org.jspecify.annotations.NullMarked;
