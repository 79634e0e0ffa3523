package dev.parley.transport.websocketspring;

import dev.parley.spi.Transport;
import dev.parley.spi.TransportProvider;
import java.util.List;

/** {@code websocket-spring} and {@code websocket-spring-close}. */
public final class WebSocketSpringProvider implements TransportProvider {
    @Override
    public List<Transport> transports() {
        return List.of(new WebSocketSpringTransport(false), new WebSocketSpringTransport(true));
    }
}
