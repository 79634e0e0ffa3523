package dev.rpcx.internal.ledger;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Client;
import dev.rpcx.Inside;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests what is charged for replies on the classic wire, from the handlers' threads to the event loop. */
@Timeout(60)
class ClassicRepliesTest {
    private static final int BYTES = 1 << 20;

    @RPCXServer("replies")
    static final class Service {
        private final CountDownLatch begun = new CountDownLatch(1);
        private final CountDownLatch made = new CountDownLatch(1);
        private final CountDownLatch held = new CountDownLatch(1);
        private final CountDownLatch free = new CountDownLatch(1);

        @Method
        byte[] large() throws InterruptedException {
            begun.countDown();
            made.await();
            return new byte[BYTES];
        }

        /** Spins, because the whole suite looks for event loops that wait. */
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        boolean hold() {
            held.countDown();
            while (free.getCount() > 0) {
                Thread.onSpinWait();
            }
            return true;
        }
    }

    @RPCXClient(remoteServerName = "replies")
    interface Calls {
        CompletableFuture<byte[]> large();

        CompletableFuture<Boolean> hold();
    }

    /** A reply is in no queue of the socket until the loop handles it. As many replies wait as threads make. */
    @Test
    void aReplyIsChargedWhileItWaitsForTheEventLoop() throws Exception {
        Service service = new Service();
        Server server = Server.builder(RegistryServer.registry(service))
                .eventLoops(1)
                .classic(true)
                .build()
                .start();
        try (Client client = Client.builder().classic().build()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            CompletableFuture<byte[]> large = calls.large();
            service.begun.await();
            CompletableFuture<Boolean> hold = calls.hold();
            service.held.await();
            service.made.countDown();
            await().atMost(Duration.ofSeconds(30))
                    .until(() -> Inside.core(server).ledger().held(Resource.REPLY_BYTES) >= BYTES);
            service.free.countDown();
            assertThat(large.get(30, TimeUnit.SECONDS)).hasSize(BYTES);
            assertThat(hold.get(30, TimeUnit.SECONDS)).isTrue();
        } finally {
            service.made.countDown();
            service.free.countDown();
            server.stop(Duration.ofSeconds(5));
        }
    }
}
