package dev.parley.transport.rest;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.List;

/** {@code rest}, which keeps its connections, and {@code rest-close}. Found with {@link java.util.ServiceLoader}. */
public final class RestProvider implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return List.of(new RestTransport(false), new RestTransport(true));
    }
}
