/**
 * gRPC for servers of RPCX: the translator between gRPC over HTTP/2 and the native wire. Starting points:
 * {@link dev.rpcx.grpc.GrpcWires}, which a server finds by the service loader, and
 * {@link dev.rpcx.grpc.GrpcConnection}, the handler of one connection. {@code rpcx/spec/grpc.md} says how calls are
 * mapped.
 *
 * <ul>
 *   <li>Before a call: {@code GrpcWire} knows the methods by their paths, and tells connections of HTTP/2 from others;
 *       {@code HttpRefusal} answers HTTP/1.
 *   <li>A connection: {@code GrpcConnection} is Netty's handler of HTTP/2, and hands bytes of the native wire to the
 *       {@code ServerConnection} behind it, which {@code ToServer} gathers; {@code GrpcFrames} takes the frames of
 *       HTTP/2; {@code CallIds} gives each call its id on the native wire.
 *   <li>A call: {@code GrpcRequest} turns what the client sends into frames; {@code GrpcCall} turns the frames of the
 *       server into messages; {@code GzipReader} and {@code Gzip} are for compressed messages.
 *   <li>Headers: {@code GrpcHeaders} has their names; {@code GrpcMetadata} maps metadata, {@code GrpcTimeout} reads a
 *       deadline, {@code Trailers} has the status of a call.
 *   <li>Services that gRPC defines, which are services of RPCX: {@code Health}; {@code ServerReflectionV1} and
 *       {@code ServerReflectionV1Alpha}, whose answers {@code ServerReflection} makes.
 * </ul>
 *
 * <p>No class of this package is for users, who call {@code Server.Builder.grpc}. The package uses rooms of RPCX that
 * users may not, and knows neither handlers nor codecs. All its classes but the services run on event loops.
 */
@NullMarked
package dev.rpcx.grpc;

import org.jspecify.annotations.NullMarked;
