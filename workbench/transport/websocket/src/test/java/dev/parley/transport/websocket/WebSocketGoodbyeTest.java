package dev.parley.transport.websocket;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.process.Ports;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Operation;
import dev.parley.spi.Transport;
import dev.parley.spi.messages.Messages;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class WebSocketGoodbyeTest {
    /** Source: RFC 6455, section 7.4.1. */
    private static final int GOING_AWAY = 1001;

    private static final Handler ECHO = new Handler() {
        @Override
        public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
            return operation.reply().cast(request);
        }
    };

    /** Holds its first message until it is let go. */
    private static final class Holding implements WebSocket.Listener {
        private final CountDownLatch isGiven = new CountDownLatch(1);
        private final CountDownLatch goesOn = new CountDownLatch(1);
        private final CompletableFuture<Integer> end = new CompletableFuture<>();

        @Override
        public @Nullable CompletionStage<?> onText(WebSocket socket, CharSequence part, boolean last) {
            isGiven.countDown();
            try {
                goesOn.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            socket.request(1);
            return null;
        }

        @Override
        public @Nullable CompletionStage<?> onClose(WebSocket socket, int code, String reason) {
            end.complete(code);
            return null;
        }

        @Override
        public void onError(WebSocket socket, Throwable error) {
            end.completeExceptionally(error);
        }
    }

    @Test
    void aClientHearsThatItsServerHasClosedWhileAMessageIsGivenToIt() throws Exception {
        Location.Socket at = new Location.Socket("127.0.0.1", Ports.free());
        Holding listener = new Holding();
        HttpClient http = HttpClient.newHttpClient();
        try {
            Transport.Server server = new WebSocketTransport(false).serve("m2", Messages.CONTRACT, at, ECHO);
            WebSocket socket;
            try {
                socket = http.newWebSocketBuilder()
                        .buildAsync(
                                URI.create("ws://" + at.host() + ":" + at.port() + WebSocketTransport.PATH), listener)
                        .get(20, TimeUnit.SECONDS);
                // a reply that says that there is no such operation is a message as good as any
                socket.sendText("{\"id\":1,\"operation\":\"none\",\"body\":{}}", true)
                        .get(20, TimeUnit.SECONDS);
                assertThat(listener.isGiven.await(20, TimeUnit.SECONDS)).isTrue();
            } finally {
                server.close();
            }
            listener.goesOn.countDown();
            assertThat(listener.end.get(20, TimeUnit.SECONDS)).isEqualTo(GOING_AWAY);
            socket.abort();
        } finally {
            http.shutdownNow();
        }
    }
}
