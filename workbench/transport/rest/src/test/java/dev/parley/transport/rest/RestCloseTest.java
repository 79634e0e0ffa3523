package dev.parley.transport.rest;

import static org.assertj.core.api.Assertions.assertThat;

import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.messages.TestModelOnlyText;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RestCloseTest {
    private static final Handler ECHO = new Handler() {
        @Override
        public <Q extends Record, R extends Record> R handle(Operation<Q, R> operation, Q request) {
            return operation.reply().cast(request);
        }
    };

    private static Location free() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return new Location.Socket("127.0.0.1", socket.getLocalPort());
        }
    }

    /** Both replies are asked for in one go: only a server that keeps the connection answers the second. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aConnectionServesOneRequestWhereItIsToBeClosed(boolean closes) throws IOException {
        Location at = free();
        RestTransport rest = new RestTransport(closes);
        try (var server = rest.serve("m1", Messages.CONTRACT, at, ECHO);
                Neighbour neighbour = rest.connect("client", Messages.CONTRACT, at)) {
            assertThat(server).isNotNull();
            for (int i = 0; i < 3; i++) {
                assertThat(neighbour
                                .call(Messages.ONLY_TEXT, new TestModelOnlyText("a" + i), Duration.ofSeconds(20))
                                .textField())
                        .isEqualTo("a" + i);
            }
            String body = "{\"textField\":\"a\"}";
            String request = "POST /" + Messages.CONTRACT.name() + "/" + Messages.ONLY_TEXT.name()
                    + " HTTP/1.1\r\nHost: m1\r\nContent-Type: application/json\r\nContent-Length: " + body.length()
                    + "\r\n%s\r\n" + body;
            try (Socket socket = new Socket(at.host(), at.port())) {
                socket.setSoTimeout(20_000);
                socket.getOutputStream()
                        .write((request.formatted("") + request.formatted("Connection: close\r\n"))
                                .getBytes(StandardCharsets.US_ASCII));
                String replies = new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
                assertThat(replies.split("HTTP/1.1 200", -1)).hasSize(closes ? 2 : 3);
            }
        }
    }
}
