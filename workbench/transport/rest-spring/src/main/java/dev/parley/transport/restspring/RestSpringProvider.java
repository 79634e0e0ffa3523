package dev.parley.transport.restspring;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.List;

/** {@code rest-spring} as Spring Boot sets it up, and {@code rest-spring-tuned} on virtual threads and plain HTTP/1.1. */
public final class RestSpringProvider implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return List.of(new RestSpringTransport(false), new RestSpringTransport(true));
    }
}
