package dev.parley.transport.websocket;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.List;

/** {@code websocket} and {@code websocket-close}. */
public final class WebSocketProvider implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return List.of(new WebSocketTransport(false), new WebSocketTransport(true));
    }
}
