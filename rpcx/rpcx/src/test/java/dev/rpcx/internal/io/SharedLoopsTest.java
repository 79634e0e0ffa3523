package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.Again;
import dev.rpcx.Client;
import dev.rpcx.Inside;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests clients that share threads if one of the clients ends while another one goes on. */
@Timeout(60)
class SharedLoopsTest {
    private static final int CALLS = 50;

    @RPCXServer("slow")
    static final class Slow {
        private final CountDownLatch free = new CountDownLatch(1);
        private final CountDownLatch begun = new CountDownLatch(1);

        @Method
        String echo(String text) {
            return text;
        }

        @Method
        String waits(String text) throws InterruptedException {
            begun.countDown();
            free.await();
            return text;
        }
    }

    @RPCXClient(remoteServerName = "slow")
    interface SlowClient {
        String echo(String text);

        CompletableFuture<String> waits(String text);
    }

    private final Slow service = new Slow();
    private final Server server = new Server(0, RegistryServer.registry(service)).start();

    @AfterEach
    void stop() {
        service.free.countDown();
        server.stop();
    }

    @Test
    void areTheSameForAllUntilAWhileAfterTheLast() throws Exception {
        // if the machine stands still, the next borrower may come too late
        Again.upToFiveTimes(200, SharedLoopsTest::assertTheNextOneFindsTheSameLoops);
    }

    private static void assertTheNextOneFindsTheSameLoops() {
        SharedLoops shared = new SharedLoops(true);
        Loops loops = shared.borrow();
        assertThat(shared.borrow()).isSameAs(loops);
        shared.giveBack();
        shared.giveBack();
        // the next borrower comes soon, so that no loop has ended
        assertThat(shared.borrow()).isSameAs(loops);
        assertThat(loops.group.isShuttingDown()).isFalse();
        shared.giveBack();
        await().until(loops.group::isTerminated);
        Loops next = shared.borrow();
        assertThat(next).isNotSameAs(loops);
        assertThat(next.group.isShuttingDown()).isFalse();
        shared.giveBack();
        await().until(next.group::isTerminated);
    }

    @Test
    void aClientThatEndsTakesItsOwnConnectionsAndCallsOnly() throws Exception {
        try (Client stays = Client.standard()) {
            SlowClient other = stays.create(SlowClient.class, "127.0.0.1", server.port());
            assertThat(other.echo("before")).isEqualTo("before");

            CompletableFuture<String> inFlight;
            SlowClient ended;
            Client ends = Client.standard();
            try (ends) {
                ended = ends.create(SlowClient.class, "127.0.0.1", server.port());
                inFlight = ended.waits("for ever");
                assertThat(service.begun.await(20, TimeUnit.SECONDS)).isTrue();
            }
            // after close has returned, every call has ended for its caller
            assertThat(inFlight).isDone();
            assertThat(Inside.core(ends).channels).isEmpty();
            assertThatThrownBy(inFlight::get)
                    .isInstanceOf(ExecutionException.class)
                    .cause()
                    .isInstanceOfSatisfying(
                            RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.UNAVAILABLE));
            SlowClient late = ended;
            assertThatThrownBy(() -> late.echo("late"))
                    .isInstanceOfSatisfying(
                            RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.UNAVAILABLE));
            ends.close();

            assertThat(Inside.core(stays).channels).hasSize(1);
            assertThat(other.echo("after")).isEqualTo("after");
        }
    }

    /** The "client per call" of the grid does the same. */
    @Test
    void aClientForEachCallMakesNoThreads() {
        try (Client first = Client.standard()) {
            assertThat(first.create(SlowClient.class, "127.0.0.1", server.port())
                            .echo("first"))
                    .isEqualTo("first");
            ThreadMXBean threads = ManagementFactory.getThreadMXBean();
            long before = threads.getTotalStartedThreadCount();
            for (int call = 0; call < CALLS; call++) {
                String text = "call " + call;
                try (Client client = Client.standard()) {
                    assertThat(client.create(SlowClient.class, "127.0.0.1", server.port())
                                    .echo(text))
                            .isEqualTo(text);
                }
            }
            // the difference allows for the other loops, and for threads that the JVM starts meanwhile
            assertThat(threads.getTotalStartedThreadCount() - before).isLessThan(CALLS / 2);
        }
    }
}
