package dev.parley.transport.websocketspring;

import dev.parley.transport.websocketcalls.Envelope;
import org.springframework.web.socket.WebSocketSession;
import org.springframework.web.socket.handler.ConcurrentWebSocketSessionDecorator;

/** Sessions that many threads may write, as Spring's reference says. */
final class Sessions {
    /** A send may take as long as Tomcat lets a blocking one. */
    private static final int SEND_LIMIT_MS = 20_000;

    /** Messages that wait for one that is being sent: four of the largest, each character up to three bytes. */
    private static final int BUFFER_BYTES = 4 * 3 * Envelope.MAX_CHARS;

    private Sessions() {}

    static WebSocketSession concurrent(WebSocketSession session) {
        return new ConcurrentWebSocketSessionDecorator(session, SEND_LIMIT_MS, BUFFER_BYTES);
    }
}
