package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests a server and a client in one process, without sockets. Frames, limits and ends of calls are the same as with
 * sockets.
 */
@Timeout(60)
class InProcessTest {
    @RPCXServer("shelf")
    static final class Shelf {
        final CountDownLatch asked = new CountDownLatch(1);

        @Method
        byte[] same(byte[] given) {
            return given;
        }

        @Method
        long timeLeft() {
            return CallContext.current().orElseThrow().remainingNanos();
        }

        @Method
        void never() throws InterruptedException {
            asked.countDown();
            new CountDownLatch(1).await();
        }
    }

    /** This interface is like a user's, which names an address of somewhere else. */
    @RPCXClient(remoteServerName = "shelf", remoteServerAddress = "10.0.0.5", remoteServerDomain = 9000)
    interface ShelfClient {
        byte[] same(byte[] given);

        /** The call has less time than by default, and enough for a machine that stands still. */
        @Method(timeoutMillis = 5_000)
        long timeLeft();

        @Method("same")
        CompletableFuture<byte[]> sameLater(byte[] given);

        CompletableFuture<Void> never();
    }

    private static Server.Builder serving(Object service) {
        return Server.builder(RegistryServer.registry(service)).inProcess().classic(true);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 100, 16 * 1024, 1024 * 1024})
    void whatIsSentComesBack(int bytes) {
        byte[] given = new byte[bytes];
        java.util.Arrays.fill(given, (byte) 7);
        Server server = serving(new Shelf()).port(9000).build().start();
        try (Client client = Client.builder().inProcess().build();
                Client classic = Client.builder().inProcess().classic().build()) {
            ShelfClient shelf = client.create(ShelfClient.class);
            assertThat(shelf.same(given)).isEqualTo(given);
            assertThat(shelf.timeLeft()).isBetween(1L, TimeUnit.SECONDS.toNanos(5));
            assertThat(client.published("anywhere", 9000)).contains("shelf/same");
            assertThat(classic.create(ShelfClient.class).same(given)).isEqualTo(given);
            List<CompletableFuture<byte[]>> many = new ArrayList<>();
            // a connection may have a sixteenth of the heap for requests, with buffers that are up to twice as large
            long room = Runtime.getRuntime().maxMemory() / 16 / (2L * bytes + 1);
            for (int i = 0; i < Math.min(50, room); i++) {
                many.add(shelf.sameLater(given));
            }
            many.forEach(reply -> assertThat(reply.join()).isEqualTo(given));
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    @Test
    void limitsHoldAndEndsAreTold() throws Exception {
        Shelf service = new Shelf();
        Server server = serving(service).maxMessageBytes(1000).build().start();
        try (Client client = Client.builder().inProcess().build()) {
            ShelfClient shelf = client.create(ShelfClient.class, "localhost", server.port());
            assertThatThrownBy(() -> shelf.same(new byte[2000]))
                    .isInstanceOfSatisfying(
                            RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.TOO_LARGE));
            CompletableFuture<Void> inFlight = shelf.never();
            service.asked.await();
            server.stop(Duration.ofMillis(100));
            assertThatThrownBy(() -> inFlight.get(10, TimeUnit.SECONDS))
                    .cause()
                    .isInstanceOfSatisfying(
                            RPCXException.class, e -> assertThat(e.executed()).isEqualTo(RPCXException.Executed.MAYBE));
            assertThatThrownBy(() -> shelf.same(new byte[1]))
                    .isInstanceOfSatisfying(
                            RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.UNAVAILABLE));
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    @Test
    void portsAreTheProcessesOwn() {
        Server one = serving(new Shelf()).build().start();
        Server two = serving(new Shelf()).build().start();
        Server three = serving(new Shelf()).port(two.port()).build();
        try {
            assertThat(one.port()).isNotEqualTo(two.port());
            assertThatThrownBy(three::start)
                    .isInstanceOfSatisfying(
                            RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.UNAVAILABLE));
        } finally {
            one.stop(Duration.ofMillis(200));
            two.stop(Duration.ofMillis(200));
        }
    }
}
