package dev.parley.transport.websocket;

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
 * Request and reply over WebSocket.
 *
 * @param closes whether a connection serves one request only: {@code websocket-close}. weerasinghe, section IV.A, does
 *     not say how long its WebSockets lived.
 */
record WebSocketTransport(boolean closes) implements Transport {
    static final String PATH = "/calls";

    @Override
    public Technology technology() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("protocol", "WebSocket (RFC 6455) over HTTP/1.1, text messages, no compression");
        settings.put("connections", WebSocketNeighbour.connections(closes));
        settings.put("serializer", Envelope.SERIALIZER);
        settings.put(
                "largest message",
                Envelope.MAX_CHARS + " characters; client frames of 16 KiB as java.net.http cuts them, "
                        + "server frames whole");
        settings.put("executor", "Helidon reads on a virtual thread a connection; a virtual thread a request");
        settings.put(
                "TCP_NODELAY",
                "on at both ends: the client's own choice; the server's would be off, and on is what every other technology here has");
        settings.put(
                "SO_RCVBUF of the server",
                "208 KiB, Linux' default bound: Helidon's own 4 KiB stops TCP for seconds where packets are larger, as on loopback");
        return new Technology(
                closes ? "websocket-close" : "websocket",
                closes
                        ? "WebSocket request/reply (JSON), a connection for each call"
                        : "WebSocket request/reply (JSON)",
                Style.SYNCHRONOUS,
                Optional.empty(),
                List.of(
                        "WebSocket server",
                        "dispatcher of messages to operations",
                        "WebSocket client",
                        "table of calls in flight"),
                "the caller knows host and port of each service that it calls",
                settings);
    }

    @Override
    public Server serve(String service, Contract contract, Location at, Handler handler) {
        return new WebSocketServer(contract, at, handler);
    }

    @Override
    public Neighbour connect(String caller, Contract contract, Location to) {
        return new WebSocketNeighbour(to, new HttpConnector(to), closes);
    }
}
