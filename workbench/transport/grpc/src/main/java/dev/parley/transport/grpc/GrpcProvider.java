package dev.parley.transport.grpc;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.Arrays;
import java.util.List;

/**
 * {@code grpc}, {@code grpc-messages} and {@code grpc-tuned}, as {@link GrpcUse} says. Found with
 * {@link java.util.ServiceLoader}.
 */
public final class GrpcProvider implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return Arrays.stream(GrpcUse.values())
                .<Transport>map(GrpcTransport::new)
                .toList();
    }
}
