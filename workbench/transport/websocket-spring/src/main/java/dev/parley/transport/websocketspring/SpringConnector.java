package dev.parley.transport.websocketspring;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import dev.parley.transport.websocketcalls.CallsInFlight;
import dev.parley.transport.websocketcalls.WebSocketNeighbour;
import java.net.URI;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.springframework.web.socket.client.standard.StandardWebSocketClient;

/** Opens the WebSockets of one neighbour, all through one client of Spring's. */
final class SpringConnector implements WebSocketNeighbour.Connector {
    private final Location to;
    private final URI uri;
    private final StandardWebSocketClient client = new StandardWebSocketClient();

    SpringConnector(Location to) {
        this.to = to;
        this.uri = URI.create("ws://" + to.host() + ":" + to.port() + WebSocketSpringTransport.PATH);
    }

    @Override
    public CompletableFuture<CallsInFlight> open() {
        SpringConnection connection = new SpringConnection(to);
        return client.execute(connection.listener(), null, uri).handle((session, thrown) -> {
            if (thrown != null) {
                Throwable cause =
                        thrown instanceof CompletionException && thrown.getCause() != null ? thrown.getCause() : thrown;
                throw new CallException(Code.UNAVAILABLE, to + " cannot be reached: " + cause, cause);
            }
            connection.opened(session);
            return connection;
        });
    }

    @Override
    public void close() {
        // the client holds nothing open: Tomcat's threads end with the last connection
    }
}
