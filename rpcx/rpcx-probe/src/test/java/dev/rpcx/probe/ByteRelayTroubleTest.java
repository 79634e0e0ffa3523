package dev.rpcx.probe;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.probe.ByteRelay.Trouble;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests relays in front of a server that sends back what it receives. */
class ByteRelayTroubleTest {
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
                            // This is what the test does to the connection.
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

    private ByteRelay relay(Trouble trouble) {
        return ByteRelay.troubled("127.0.0.1", "127.0.0.1", server.getLocalPort(), trouble);
    }

    private static double secondsFor(Socket socket, int bytes) throws IOException {
        byte[] sent = new byte[bytes];
        new Random(1).nextBytes(sent);
        long beganNs = System.nanoTime();
        Thread.ofVirtual().start(() -> {
            try {
                socket.getOutputStream().write(sent);
            } catch (IOException cut) {
                // The reader sees it.
            }
        });
        assertThat(socket.getInputStream().readNBytes(bytes)).isEqualTo(sent);
        return (System.nanoTime() - beganNs) / 1e9;
    }

    @Test
    void aDelayIsAddedEachWayAndDoesNotHoldBackWhatFollows() throws IOException {
        try (ByteRelay relay = relay(new Trouble(Duration.ofMillis(50), Optional.empty(), Optional.empty()));
                Socket socket = new Socket(relay.host(), relay.port())) {
            assertThat(secondsFor(socket, 1)).isBetween(0.1, 1.0);
            // A relay that waited 50 ms for each 8 kB would take 12 s.
            assertThat(secondsFor(socket, 1_000_000)).isBetween(0.1, 3.0);
        }
    }

    @Test
    void noMoreBytesPassThanAllowed() throws IOException {
        try (ByteRelay relay = relay(new Trouble(Duration.ZERO, Optional.of(100_000L), Optional.empty()));
                Socket socket = new Socket(relay.host(), relay.port())) {
            assertThat(secondsFor(socket, 100_000)).isGreaterThan(0.95);
        }
    }

    @Test
    void aConnectionIsCutAfterItsTime() throws IOException {
        try (ByteRelay relay = relay(new Trouble(Duration.ZERO, Optional.empty(), Optional.of(Duration.ofSeconds(2))));
                Socket socket = new Socket(relay.host(), relay.port())) {
            // Before that, a byte passes both ways.
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
        try (ByteRelay relay = relay(new Trouble(Duration.ofMillis(1), Optional.empty(), Optional.empty()));
                Socket socket = new Socket(relay.host(), relay.port())) {
            secondsFor(socket, 10);
            socket.shutdownOutput();
            assertThat(socket.getInputStream().read()).isEqualTo(-1);
        }
    }

    @Test
    void bytesAreCountedOnceTheyHavePassedTheTrouble() throws IOException, InterruptedException {
        try (ByteRelay relay = relay(new Trouble(Duration.ofMillis(5), Optional.of(10_000_000L), Optional.empty()));
                Socket socket = new Socket(relay.host(), relay.port())) {
            secondsFor(socket, 100_000);
            assertThat(relay.settled()).isEqualTo(new ByteRelay.Counts(100_000, 100_000));
        }
    }

    /** Because of the delay, the relay has not passed any byte on when it sees the reset. */
    @Test
    void whatCameBeforeAResetIsPassedOn() throws IOException {
        try (ServerSocket target = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                ByteRelay relay = ByteRelay.troubled(
                        "127.0.0.1",
                        "127.0.0.1",
                        target.getLocalPort(),
                        new Trouble(Duration.ofMillis(500), Optional.empty(), Optional.empty()));
                Socket received = reset(new Socket(relay.host(), relay.port()), target)) {
            assertThat(received.getInputStream().readAllBytes()).hasSize(1_000);
        }
    }

    /** Sends a thousand bytes and resets the connection. Returns the other end of what the relay opened for it. */
    private static Socket reset(Socket connection, ServerSocket target) throws IOException {
        try (Socket caller = connection) {
            Socket received = target.accept();
            caller.getOutputStream().write(new byte[1_000]);
            caller.setSoLinger(true, 0);
            return received;
        }
    }

    @Test
    void aTroubleSaysWhichOfItsValuesIsWrong() {
        assertThatThrownBy(() -> new Trouble(Duration.ofMillis(-1), Optional.empty(), Optional.empty()))
                .hasMessage("delay: PT-0.001S (expected: 0 or more)");
        assertThatThrownBy(() -> new Trouble(Duration.ZERO, Optional.of(0L), Optional.empty()))
                .hasMessage("bytesPerSecond: 0 (expected: 1 or more)");
        assertThatThrownBy(() -> new Trouble(Duration.ZERO, Optional.empty(), Optional.of(Duration.ZERO)))
                .hasMessage("cutEvery: PT0S (expected: more than 0)");
    }

    /** 192.0.2.1 stands for documentation, and no machine has it. Source: RFC 5737. */
    @Test
    void anAddressThatTheMachineDoesNotHaveIsNamed() {
        assertThatThrownBy(() -> ByteRelay.troubled("192.0.2.1", "127.0.0.1", 80, Trouble.NONE))
                .isInstanceOf(UncheckedIOException.class)
                .hasMessageStartingWith("no free port at 192.0.2.1 for a relay: ");
    }
}
