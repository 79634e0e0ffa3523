package dev.parley.transport.rsocket;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.List;

/** {@code rsocket} and {@code rsocket-tuned}. */
public final class RSocketProvider implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return List.of(new RSocketTransport(false), new RSocketTransport(true));
    }
}
