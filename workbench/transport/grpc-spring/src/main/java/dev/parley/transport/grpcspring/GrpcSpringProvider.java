package dev.parley.transport.grpcspring;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.List;

/** {@code grpc-spring} as Spring Boot sets it up, and {@code grpc-spring-tuned}. */
public final class GrpcSpringProvider implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return List.of(new GrpcSpringTransport(false), new GrpcSpringTransport(true));
    }
}
