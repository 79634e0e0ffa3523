package dev.parley.transport.websocket;

import dev.parley.spi.Location;
import dev.parley.transport.websocketcalls.CallsInFlight;
import dev.parley.transport.websocketcalls.WebSocketNeighbour;
import java.net.URI;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/** Opens the WebSockets of one neighbour, all through one {@link HttpClient}. */
final class HttpConnector implements WebSocketNeighbour.Connector {
    private final Location to;
    private final URI uri;
    private final HttpClient http =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    HttpConnector(Location to) {
        this.to = to;
        this.uri = URI.create("ws://" + to.host() + ":" + to.port() + WebSocketTransport.PATH);
    }

    @Override
    public CompletableFuture<CallsInFlight> open() {
        return WebSocketConnection.open(http, uri, to);
    }

    @Override
    public void close() {
        http.shutdownNow();
        try {
            // its threads end after the calls that were under way have been told
            http.awaitTermination(Duration.ofSeconds(1));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
