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
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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

    @ParameterizedTest
    @CsvSource({"false, 1", "true, 3"})
    void aConnectionServesOneRequestWhereItIsToBeClosed(boolean closes, int connections) throws IOException {
        Location at = free();
        RestTransport rest = new RestTransport(closes);
        AtomicInteger accepted = new AtomicInteger();
        try (ServerSocket door = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
                var server = rest.serve("m1", Messages.CONTRACT, at, ECHO)) {
            assertThat(server).isNotNull();
            Thread.ofVirtual().start(() -> letIn(door, at, accepted));
            try (Neighbour neighbour =
                    rest.connect("client", Messages.CONTRACT, new Location.Socket("127.0.0.1", door.getLocalPort()))) {
                for (int i = 0; i < 3; i++) {
                    assertThat(neighbour
                                    .call(Messages.ONLY_TEXT, new TestModelOnlyText("a" + i), Duration.ofSeconds(20))
                                    .textField())
                            .isEqualTo("a" + i);
                }
            }
        }
        assertThat(accepted).hasValue(connections);
    }

    private static void letIn(ServerSocket door, Location at, AtomicInteger accepted) {
        try {
            while (true) {
                Socket in = door.accept();
                accepted.incrementAndGet();
                Socket on = new Socket(at.host(), at.port());
                Thread.ofVirtual().start(() -> pass(in, on));
                Thread.ofVirtual().start(() -> pass(on, in));
            }
        } catch (IOException closed) {
            // the test has ended
        }
    }

    private static void pass(Socket from, Socket to) {
        try (from;
                to) {
            from.getInputStream().transferTo(to.getOutputStream());
        } catch (IOException closed) {
            // one side has ended
        }
    }
}
