package dev.parley.transport.openfeign;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.List;

/** {@code openfeign} with Feign's default client, and {@code openfeign-tuned} with Apache HttpClient 5 and its pool. */
public final class OpenFeignProvider implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return List.of(new OpenFeignTransport(false), new OpenFeignTransport(true));
    }
}
