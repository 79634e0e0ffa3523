package dev.parley.transport.websocketspring;

import dev.parley.model.Technology;
import dev.parley.model.Technology.Style;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Transport;
import dev.parley.transport.websocketcalls.Envelope;
import dev.parley.transport.websocketcalls.WebSocketNeighbour;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * WebSocket in a Spring Boot service. Source: weerasinghe, section III, whose services are Spring Boot's; how long its
 * WebSockets lived it does not say.
 *
 * @param closes whether a connection serves one request only: {@code websocket-spring-close}
 */
record WebSocketSpringTransport(boolean closes) implements Transport {
    static final String PATH = "/calls";

    @Override
    public Technology technology() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("server", "Spring Boot, @EnableWebSocket, TextWebSocketHandler, embedded Tomcat");
        settings.put("client", "Spring's StandardWebSocketClient, which is Tomcat's");
        settings.put("protocol", "WebSocket (RFC 6455) over HTTP/1.1, text messages, no compression");
        settings.put("connections", WebSocketNeighbour.connections(closes));
        settings.put("serializer", Envelope.SERIALIZER);
        settings.put(
                "largest message",
                Envelope.MAX_CHARS + " characters, read in parts of 8 KiB, Tomcat's buffer (supportsPartialMessages)");
        settings.put(
                "concurrent sends",
                "ConcurrentWebSocketSessionDecorator at both ends (Spring Framework reference, WebSockets,"
                        + " WebSocketHandler)");
        settings.put("executor", "a virtual thread a request; Tomcat's threads read");
        settings.put("TCP_NODELAY", "on at the server, Tomcat's default; Tomcat's client leaves the system's");
        return new Technology(
                closes ? "websocket-spring-close" : "websocket-spring",
                closes ? "WebSocket, Spring Boot, a connection for each call" : "WebSocket, Spring Boot",
                Style.SYNCHRONOUS,
                Optional.empty(),
                List.of(
                        "embedded web server with a WebSocket handler",
                        "dispatcher of messages to operations",
                        "WebSocket client",
                        "table of calls in flight"),
                "the caller knows host and port of each service that it calls",
                settings);
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        return new WebSocketSpringServer(contract, at, handler);
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        return new WebSocketNeighbour(to, new SpringConnector(to), closes);
    }
}
