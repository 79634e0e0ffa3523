package dev.parley.limits;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.parley.model.Limits.Proxy;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The relay stands in front of a server that sends back what it gets. */
class TroubledRelayTest {
    private ServerSocket server;

    @BeforeEach
    void listen() throws IOException {
        server = new ServerSocket(0, 0, InetAddress.getLoopbackAddress());
        Thread.ofVirtual().start(() -> {
            while (!server.isClosed()) {
                try {
                    Socket socket = server.accept();
                    Thread.ofVirtual().start(() -> {
                        try (socket) {
                            socket.getInputStream().transferTo(socket.getOutputStream());
                        } catch (IOException cut) {
                            // what this test does to it
                        }
                    });
                } catch (IOException closed) {
                    return;
                }
            }
        });
    }

    @AfterEach
    void close() throws IOException {
        server.close();
    }

    private TroubledRelay relay(Proxy proxy) {
        return TroubledRelay.listen("127.0.0.1", "127.0.0.1", server.getLocalPort(), proxy);
    }

    private static double secondsFor(Socket socket, int bytes) throws IOException {
        byte[] sent = new byte[bytes];
        new Random(1).nextBytes(sent);
        long beganNs = System.nanoTime();
        Thread.ofVirtual().start(() -> {
            try {
                socket.getOutputStream().write(sent);
            } catch (IOException cut) {
                // the reader sees it
            }
        });
        assertThat(socket.getInputStream().readNBytes(bytes)).isEqualTo(sent);
        return (System.nanoTime() - beganNs) / 1e9;
    }

    @Test
    void aDelayIsAddedEachWayAndDoesNotHoldBackWhatFollows() throws IOException {
        try (TroubledRelay relay = relay(new Proxy(Duration.ofMillis(50), Optional.empty(), Optional.empty()));
                Socket socket = new Socket(relay.host(), relay.port())) {
            assertThat(secondsFor(socket, 1)).isBetween(0.1, 1.0);
            // a relay that waited 50 ms for each 8 kB would take 12 s
            assertThat(secondsFor(socket, 1_000_000)).isBetween(0.1, 3.0);
        }
    }

    @Test
    void noMoreBytesPassThanAllowed() throws IOException {
        try (TroubledRelay relay = relay(new Proxy(Duration.ZERO, Optional.of(100_000L), Optional.empty()));
                Socket socket = new Socket(relay.host(), relay.port())) {
            assertThat(secondsFor(socket, 100_000)).isGreaterThan(0.95);
        }
    }

    @Test
    void aConnectionIsCutAfterItsTime() throws IOException {
        try (TroubledRelay relay =
                        relay(new Proxy(Duration.ZERO, Optional.empty(), Optional.of(Duration.ofSeconds(2))));
                Socket socket = new Socket(relay.host(), relay.port())) {
            // a byte passes both ways before
            secondsFor(socket, 1);
            assertThatThrownBy(() -> {
                        if (socket.getInputStream().read() < 0) {
                            throw new IOException("an orderly end");
                        }
                    })
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining("reset");
            try (Socket next = new Socket(relay.host(), relay.port())) {
                assertThat(secondsFor(next, 10)).isPositive();
            }
        }
    }

    @Test
    void theEndOfAStreamIsPassedOn() throws IOException {
        try (TroubledRelay relay = relay(new Proxy(Duration.ofMillis(1), Optional.empty(), Optional.empty()));
                Socket socket = new Socket(relay.host(), relay.port())) {
            secondsFor(socket, 10);
            socket.shutdownOutput();
            assertThat(socket.getInputStream().read()).isEqualTo(-1);
        }
    }
}
