package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Tests peers that reset their connection while the other side writes to it. The write fails, and ends the connection
 * before it returns.
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
    void aCallWhoseReplyCannotBeSentIsGivenBackOnce() throws Exception {
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
                assertThat(server.core().connections()).isZero();
                assertThat(server.core().running()).isZero();
                assertThat(server.core().ledger().audit()).isEmpty();
            });
            assertThat(thrown).isEmpty();
        } finally {
            loops.removeHandler(seen);
            server.stop(Duration.ofMillis(200));
        }
    }

    @RPCXClient(remoteServerName = "echo")
    interface Echo {
        @Method(timeoutMillis = 60_000)
        CompletableFuture<String> echo(String text);
    }

    /** Callbacks make further calls while replies are being read. The requests of these calls can no longer be sent. */
    @ParameterizedTest
    @CsvSource({
        "reset, 0, 0", "reset, 1, 3000", "reset, 1, 5000", "reset, 5, 1000", "reset, 1, 20000",
        "close, 0, 0", "close, 1, 3000", "close, 1, 5000", "close, 5, 1000", "close, 1, 20000"
    })
    void replyThatHasComeReachesItsCallerThoughTheServerIsGone(String end, int times, int bytes) throws Exception {
        int calls = 1_000;
        String next = "y".repeat(bytes);
        CountDownLatch gone = new CountDownLatch(1);
        List<CompletableFuture<String>> replies = new ArrayList<>();
        try (RawServer server = new RawServer();
                Client client = Client.standard()) {
            Echo echo = client.create(Echo.class, "127.0.0.1", server.port());
            CompletableFuture<RawServer.Peer> accepted = CompletableFuture.supplyAsync(() -> accept(server));
            for (int i = 0; i < calls; i++) {
                replies.add(echo.echo("a" + i).whenComplete((reply, failure) -> {
                    held(gone);
                    for (int k = 0; failure == null && k < times; k++) {
                        echo.echo(next);
                    }
                }));
            }
            RawServer.Peer peer = accepted.get(20, TimeUnit.SECONDS);
            ByteBuf all = Unpooled.buffer();
            for (int i = 0; i < calls; i++) {
                all.writeBytes(RawPeer.frame(Wire.REPLY, peer.read(Wire.REQUEST).id(), RawPeer.text("r")));
            }
            peer.write(all);
            if (end.equals("reset")) {
                peer.reset();
            } else {
                peer.close();
            }
            gone.countDown();
            for (CompletableFuture<String> reply : replies) {
                assertThat(reply.get(60, TimeUnit.SECONDS)).isEqualTo("r");
            }
        }
    }

    private static RawServer.Peer accept(RawServer server) {
        try {
            return server.accept(Wire.MAX_SLOTS);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void held(CountDownLatch gone) {
        try {
            assertThat(gone.await(60, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
