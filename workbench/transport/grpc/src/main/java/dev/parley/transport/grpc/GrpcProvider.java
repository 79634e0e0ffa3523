package dev.parley.transport.grpc;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.List;

/** Found with {@link java.util.ServiceLoader}. */
public final class GrpcProvider implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return List.of(new GrpcTransport(false), new GrpcTransport(true));
    }
}
