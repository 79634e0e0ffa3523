package dev.rpcx.probe;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import org.junit.jupiter.api.Test;

class ByteRelayTest {
    @Test
    void everyByteIsPassedOnAndCounted() throws Exception {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                ByteRelay relay = ByteRelay.to("127.0.0.1", server.getLocalPort())) {
            Thread.ofVirtual().start(() -> answerTwiceAsMuch(server));
            try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), relay.port())) {
                ByteRelay.Counts before = relay.settled();
                socket.getOutputStream().write(new byte[100_000]);
                assertThat(socket.getInputStream().readNBytes(200_000)).hasSize(200_000);
                assertThat(relay.settled().since(before)).isEqualTo(new ByteRelay.Counts(100_000, 200_000));
            }
        }
    }

    @Test
    void aTargetThatRefusesEndsTheCallersConnection() throws Exception {
        int nobody;
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            nobody = server.getLocalPort();
        }
        try (ByteRelay relay = ByteRelay.to("127.0.0.1", nobody);
                Socket socket = new Socket(InetAddress.getLoopbackAddress(), relay.port())) {
            assertThat(socket.getInputStream().read()).isEqualTo(-1);
        }
    }

    private static void answerTwiceAsMuch(ServerSocket server) {
        try (Socket socket = server.accept()) {
            byte[] received = socket.getInputStream().readNBytes(100_000);
            socket.getOutputStream().write(received);
            socket.getOutputStream().write(received);
            socket.getInputStream().read();
        } catch (IOException ended) {
            // the test's assertions see what is missing
        }
    }
}
