/**
 * gRPC on Spring Boot: a {@code @GrpcService} on Boot's gRPC server, called over a channel of Boot's channel factory.
 *
 * <p>Starting points: {@link dev.parley.transport.grpcspring.GrpcSpringProvider}, {@link dev.parley.transport.grpcspring.MessagesService}.
 * Handlers run on gRPC's default executor. Imports the SPI, Spring Boot, gRPC, and the Protobuf encoding built for Boot's Protobuf; no
 * other transport.
 */
@NullMarked
package dev.parley.transport.grpcspring;

import org.jspecify.annotations.NullMarked;
