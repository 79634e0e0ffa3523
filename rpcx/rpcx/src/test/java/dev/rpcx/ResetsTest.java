package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Peers that reset their connection while the server writes to it: the write that fails ends the connection within
 * itself.
 */
@Timeout(120)
class ResetsTest {
    private static final int CONNECTIONS = LongForm.of(150, 5000);

    @RPCXServer("much")
    static final class Much {
        @Method
        String much(int bytes) {
            return "x".repeat(bytes);
        }
    }

    @Test
    void aCallWhoseReplyFailsToLeaveIsGivenBackOnce() throws Exception {
        List<String> thrown = new CopyOnWriteArrayList<>();
        Handler seen = new Handler() {
            @Override
            public void publish(LogRecord told) {
                thrown.add(told.getMessage() + ": " + told.getThrown());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        // what a task of an event loop throws is logged, and nothing else hears of it
        Logger loops = Logger.getLogger("io.netty.util.concurrent.AbstractEventExecutor");
        loops.addHandler(seen);
        ByteBuf size = Unpooled.buffer().writeByte(1 << 3);
        Varint.write(size, 64 << 10);
        Server server = Server.builder(RegistryServer.registry(new Much()))
                .host("127.0.0.1")
                .build()
                .start();
        try {
            for (int i = 0; i < CONNECTIONS; i++) {
                ByteBuf requests = RawPeer.preface();
                for (int k = 0; k < 30; k++) {
                    requests.writeBytes(RawPeer.frame(
                            Wire.REQUEST | Wire.NAMED,
                            1 << 16 | k,
                            RawPeer.prelude("much", "much").writeBytes(size.duplicate())));
                }
                try (RawPeer peer = new RawPeer(server.port())) {
                    peer.socket.setSoLinger(true, 0);
                    peer.send(requests);
                    peer.read(8 + 1000 * (i % 97));
                }
            }
            await().untilAsserted(() -> {
                assertThat(server.connections()).isZero();
                assertThat(server.running()).isZero();
                assertThat(server.ledger().audit()).isEmpty();
            });
            assertThat(thrown).isEmpty();
        } finally {
            loops.removeHandler(seen);
            server.stop(Duration.ofMillis(200));
        }
    }
}
