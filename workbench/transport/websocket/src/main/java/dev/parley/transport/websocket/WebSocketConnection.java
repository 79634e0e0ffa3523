package dev.parley.transport.websocket;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import dev.parley.transport.websocketcalls.CallsInFlight;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A WebSocket of java.net.http. Messages go out one after the other, since {@link WebSocket#sendText} takes one at a
 * time.
 */
final class WebSocketConnection extends CallsInFlight implements WebSocket.Listener {
    /** A peer that takes the connection and does not answer is no WebSocket. */
    private static final Duration HANDSHAKE = Duration.ofSeconds(10);

    /** The end of the row of messages that go out. Guarded by this. */
    private CompletableFuture<WebSocket> sent = new CompletableFuture<>();

    private WebSocketConnection(Location to) {
        super(to);
    }

    static CompletableFuture<CallsInFlight> open(HttpClient http, URI uri, Location to) {
        WebSocketConnection connection = new WebSocketConnection(to);
        return http.newWebSocketBuilder()
                .connectTimeout(HANDSHAKE)
                .buildAsync(uri, connection)
                .handle((socket, thrown) -> {
                    if (thrown != null) {
                        Throwable cause = thrown instanceof CompletionException && thrown.getCause() != null
                                ? thrown.getCause()
                                : thrown;
                        throw new CallException(Code.UNAVAILABLE, to + " cannot be reached: " + cause, cause);
                    }
                    connection.sent.complete(socket);
                    return connection;
                });
    }

    @Override
    protected synchronized void write(String text, CompletableFuture<String> reply) {
        sent = sent.thenCompose(
                socket -> reply.isDone() ? CompletableFuture.completedFuture(socket) : socket.sendText(text, true));
        sent.whenComplete((socket, thrown) -> {
            if (thrown != null) {
                lost("sending failed: " + thrown);
            }
        });
    }

    @Override
    public @Nullable CompletionStage<?> onText(WebSocket socket, CharSequence part, boolean last) {
        if (received(part, last)) {
            socket.request(1);
        } else {
            socket.abort();
        }
        return null;
    }

    @Override
    public @Nullable CompletionStage<?> onClose(WebSocket socket, int code, String reason) {
        lost("connection closed, code " + code + (reason.isEmpty() ? "" : ", " + reason));
        return null;
    }

    @Override
    public void onError(WebSocket socket, Throwable error) {
        lost("connection lost: " + error);
    }

    @Override
    protected CompletableFuture<?> goodbye() {
        CompletableFuture<WebSocket> row;
        synchronized (this) {
            row = sent;
        }
        return row.thenCompose(socket -> socket.sendClose(WebSocket.NORMAL_CLOSURE, ""))
                .completeOnTimeout(null, 200, TimeUnit.MILLISECONDS)
                .handle((socket, thrown) -> {
                    if (socket != null) {
                        socket.abort();
                    }
                    return null;
                });
    }
}
