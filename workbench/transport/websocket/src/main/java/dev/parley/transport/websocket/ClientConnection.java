package dev.parley.transport.websocket;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * One open WebSocket and the calls in flight on it. Messages go out one after the other, since {@link WebSocket#sendText} takes one at a
 * time; replies are matched by number. Once lost, it stays lost.
 */
final class ClientConnection implements WebSocket.Listener {
    private final Location to;
    private final ConcurrentHashMap<Long, CompletableFuture<String>> inFlight = new ConcurrentHashMap<>();
    private final AtomicLong ids = new AtomicLong();
    private final StringBuilder parts = new StringBuilder();

    private volatile @Nullable CallException lost;

    /** The end of the row of messages that go out. Guarded by this. */
    private CompletableFuture<WebSocket> sent = new CompletableFuture<>();

    private ClientConnection(Location to) {
        this.to = to;
    }

    /** Fails with {@link Code#UNAVAILABLE} when there is no WebSocket at that address. */
    static CompletableFuture<ClientConnection> open(HttpClient http, URI uri, Location to) {
        ClientConnection connection = new ClientConnection(to);
        return http.newWebSocketBuilder().buildAsync(uri, connection).handle((socket, thrown) -> {
            if (thrown != null) {
                Throwable cause =
                        thrown instanceof CompletionException && thrown.getCause() != null ? thrown.getCause() : thrown;
                throw new CallException(Code.UNAVAILABLE, to + " cannot be reached: " + cause, cause);
            }
            connection.sent.complete(socket);
            return connection;
        });
    }

    boolean isLost() {
        return lost != null;
    }

    /** @param reply completed with the text of the reply, unless its owner ends it before */
    void send(String operation, Record request, CompletableFuture<String> reply) {
        long id = ids.incrementAndGet();
        String text;
        try {
            text = Envelope.request(id, operation, request);
        } catch (CallException e) {
            reply.completeExceptionally(e);
            return;
        }
        inFlight.put(id, reply);
        reply.whenComplete((done, thrown) -> inFlight.remove(id));
        CallException gone = lost;
        if (gone != null) {
            // lost() may have gone through the table before this call stood in it
            reply.completeExceptionally(gone);
            return;
        }
        synchronized (this) {
            sent = sent.thenCompose(
                    socket -> reply.isDone() ? CompletableFuture.completedFuture(socket) : socket.sendText(text, true));
            sent.whenComplete((socket, thrown) -> {
                if (thrown != null) {
                    lost("sending failed: " + thrown);
                }
            });
        }
    }

    @Override
    public @Nullable CompletionStage<?> onText(WebSocket socket, CharSequence part, boolean last) {
        if (parts.length() + part.length() > Envelope.MOST_CHARS) {
            lost("a reply of over " + Envelope.MOST_CHARS + " characters");
            socket.abort();
            return null;
        }
        parts.append(part);
        if (last) {
            String text = parts.toString();
            parts.setLength(0);
            try {
                CompletableFuture<String> reply = inFlight.get(Envelope.id(text));
                if (reply != null) {
                    reply.complete(text);
                }
            } catch (CallException e) {
                lost(String.valueOf(e.getMessage()));
                socket.abort();
                return null;
            }
        }
        socket.request(1);
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

    private void lost(String how) {
        CallException gone = new CallException(Code.UNAVAILABLE, to + ": " + how);
        lost = gone;
        inFlight.values().forEach(reply -> reply.completeExceptionally(gone));
    }

    /** Says goodbye if that can be done at once; the calls in flight end. */
    void close() {
        lost("client closed");
        CompletableFuture<WebSocket> row;
        synchronized (this) {
            row = sent;
        }
        row.thenCompose(socket -> socket.sendClose(WebSocket.NORMAL_CLOSURE, ""))
                .completeOnTimeout(null, 200, TimeUnit.MILLISECONDS)
                .handle((socket, thrown) -> {
                    if (socket != null) {
                        socket.abort();
                    }
                    return null;
                })
                .join();
    }
}
