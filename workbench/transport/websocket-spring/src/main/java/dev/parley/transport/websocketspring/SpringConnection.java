package dev.parley.transport.websocketspring;

import dev.parley.spi.Location;
import dev.parley.transport.websocketcalls.CallsInFlight;
import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.springframework.web.socket.CloseStatus;
import org.springframework.web.socket.TextMessage;
import org.springframework.web.socket.WebSocketHandler;
import org.springframework.web.socket.WebSocketSession;
import org.springframework.web.socket.handler.TextWebSocketHandler;

/** A WebSocket of Spring's client. */
final class SpringConnection extends CallsInFlight {
    /** Null until the handshake is over: nothing is written before. */
    private volatile @Nullable WebSocketSession session;

    SpringConnection(Location to) {
        super(to);
    }

    void opened(WebSocketSession open) {
        session = Sessions.concurrent(open);
    }

    WebSocketHandler listener() {
        return new Replies();
    }

    @Override
    protected void write(String text, CompletableFuture<String> reply) {
        WebSocketSession open = session;
        try {
            if (open != null && !reply.isDone()) {
                open.sendMessage(new TextMessage(text));
            }
        } catch (IOException | RuntimeException e) {
            lost("sending failed: " + e);
            // a message that was cut off leaves nothing that could follow it
            end(CloseStatus.SERVER_ERROR);
        }
    }

    @Override
    protected CompletableFuture<?> goodbye() {
        end(CloseStatus.NORMAL);
        return CompletableFuture.completedFuture(null);
    }

    private void end(CloseStatus how) {
        WebSocketSession open = session;
        try {
            if (open != null) {
                open.close(how);
            }
        } catch (IOException | RuntimeException e) {
            System.getLogger(SpringConnection.class.getName())
                    .log(System.Logger.Level.DEBUG, "the server is gone already", e);
        }
    }

    /** What the server sends. Called by one thread at a time. */
    private final class Replies extends TextWebSocketHandler {
        @Override
        protected void handleTextMessage(WebSocketSession from, TextMessage message) throws IOException {
            if (!received(message.getPayload(), message.isLast())) {
                from.close(CloseStatus.PROTOCOL_ERROR);
            }
        }

        @Override
        public boolean supportsPartialMessages() {
            return true;
        }

        @Override
        public void handleTransportError(WebSocketSession from, Throwable error) {
            lost("connection lost: " + error);
        }

        @Override
        public void afterConnectionClosed(WebSocketSession from, CloseStatus status) {
            lost("connection closed, " + status);
        }
    }
}
