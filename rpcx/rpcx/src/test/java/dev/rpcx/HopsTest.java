package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests a call that goes on through five services. Its remaining time never grows, and a cancel reaches the last
 * service.
 */
@Timeout(300)
class HopsTest {
    private static final int HOPS = 5;

    @RPCXServer("hop")
    static final class Hop {
        private final Next next;
        final AtomicInteger entered = new AtomicInteger();
        final AtomicInteger interrupted = new AtomicInteger();

        /** @param next the client of the next service; null at the last */
        Hop(Next next) {
            this.next = next;
        }

        private static List<Long> left() {
            List<Long> left = new ArrayList<>();
            left.add(CallContext.current().orElseThrow().remainingNanos());
            return left;
        }

        @Method
        List<Long> times() {
            List<Long> times = left();
            if (next != null) {
                times.addAll(next.times());
            }
            return times;
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        List<Long> timesOnPool() {
            List<Long> times = left();
            if (next != null) {
                times.addAll(next.timesOnPool());
            }
            return times;
        }

        @Method
        void block() throws InterruptedException {
            enter(Next::block);
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        void blockOnPool() throws InterruptedException {
            enter(Next::blockOnPool);
        }

        private void enter(java.util.function.Consumer<Next> on) throws InterruptedException {
            entered.incrementAndGet();
            try {
                if (next != null) {
                    on.accept(next);
                } else {
                    new CountDownLatch(1).await();
                }
            } catch (InterruptedException | RPCXException e) {
                interrupted.incrementAndGet();
                throw e;
            }
        }
    }

    @RPCXClient(remoteServerName = "hop")
    interface Next {
        @Method(timeoutMillis = 30_000)
        List<Long> times();

        @Method(timeoutMillis = 30_000)
        List<Long> timesOnPool();

        @Method(timeoutMillis = 30_000)
        void block();

        @Method(timeoutMillis = 30_000)
        void blockOnPool();

        @Method(value = "block", timeoutMillis = 30_000)
        CompletableFuture<Void> blockLater();

        @Method(value = "blockOnPool", timeoutMillis = 30_000)
        CompletableFuture<Void> blockOnPoolLater();
    }

    @RPCXServer("spinning")
    static final class Spinning {
        volatile boolean over;
        final AtomicInteger spinning = new AtomicInteger();
        final AtomicInteger executed = new AtomicInteger();

        @Method
        void spin() {
            spinning.incrementAndGet();
            while (!over) {
                Thread.onSpinWait();
            }
        }

        @Method
        void count() {
            executed.incrementAndGet();
        }
    }

    @RPCXClient(remoteServerName = "spinning")
    interface SpinningClient {
        CompletableFuture<Void> spin();

        @Method(timeoutMillis = 200)
        void count();

        @Method("count")
        void countPatiently();
    }

    private final List<Server> servers = new ArrayList<>();
    private final List<Hop> hops = new ArrayList<>();
    private Client client;
    private Next first;

    @BeforeEach
    void start() {
        client = Client.standard();
        Next next = null;
        for (int i = 0; i < HOPS; i++) {
            Hop hop = new Hop(next);
            Server server = new Server(0, RegistryServer.registry(hop)).start();
            hops.add(0, hop);
            servers.add(server);
            next = client.create(Next.class, "127.0.0.1", server.port());
        }
        first = next;
    }

    @AfterEach
    void stop() {
        client.close();
        servers.forEach(server -> server.stop(Duration.ofMillis(100)));
    }

    private static void assertNeverLonger(List<Long> times) {
        assertThat(times).hasSize(HOPS);
        for (int hop = 1; hop < HOPS; hop++) {
            assertThat(times.get(hop)).as("left at hop %d: %s", hop + 1, times).isLessThanOrEqualTo(times.get(hop - 1));
        }
    }

    @Test
    void timeGetsShorterFromHopToHop() {
        int calls = LongForm.of(200, 20_000);
        for (int i = 0; i < calls; i++) {
            List<Long> times = CallContext.within(Duration.ofSeconds(3), first::times);
            assertNeverLonger(times);
            assertThat(times.get(0)).isBetween(1L, TimeUnit.SECONDS.toNanos(3));
        }
        LongForm.figure(8, "%d calls over %d hops: the time left was never longer at a later hop", calls, HOPS);
    }

    @Test
    void aCallThatIsGivenUpIsGivenUpAtTheFifthService() {
        int calls = LongForm.of(20, 1000);
        long longest = 0;
        for (int i = 1; i <= calls; i++) {
            longest = Math.max(longest, cancelled(first.blockLater(), i));
        }
        LongForm.figure(8, "%d cancels: the fifth handler was interrupted within %.1f ms", calls, longest / 1e6);
    }

    /** Cancels a call, and returns how many nanoseconds passed until the last handler was interrupted. */
    private long cancelled(CompletableFuture<Void> blocked, int times) {
        Hop last = hops.get(HOPS - 1);
        await().pollInterval(Duration.ofMillis(1)).until(() -> last.entered.get() == times);
        long begin = System.nanoTime();
        blocked.cancel(true);
        await().pollDelay(Duration.ZERO)
                .pollInterval(Duration.ofMillis(1))
                .until(() -> last.interrupted.get() == times);
        return System.nanoTime() - begin;
    }

    @Test
    void whenTheTimeIsOverEveryHandlerIsInterrupted() throws Exception {
        // this call is answered, so from here on all five connections stand
        assertThat(first.times()).hasSize(HOPS);
        // the time may be over before the last handler has begun
        Again.inTwiceTheTime(200, millis -> {
            assertThatThrownBy(() -> CallContext.within(Duration.ofMillis(millis), () -> {
                        first.block();
                        return null;
                    }))
                    .isInstanceOfSatisfying(
                            RPCXException.class,
                            e -> assertThat(e.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED));
            return hops.get(HOPS - 1).entered.get() > 0;
        });
        await().untilAsserted(() -> assertThat(hops).allSatisfy(hop -> {
            assertThat(hop.entered).hasPositiveValue();
            assertThat(hop.interrupted).hasValue(hop.entered.get());
        }));
    }

    /** Virtual threads compute without a pause, so that no other virtual thread gets a carrier thread. */
    @Test
    void bothHoldWhenAllCarrierThreadsAreBusy() {
        Spinning spinning = new Spinning();
        try (Server busy = new Server(0, RegistryServer.registry(spinning)).start()) {
            SpinningClient spinner = client.create(SpinningClient.class, "127.0.0.1", busy.port());
            int carriers = Runtime.getRuntime().availableProcessors();
            List<CompletableFuture<Void>> spins = new ArrayList<>();
            for (int i = 0; i < 2 * carriers; i++) {
                spins.add(spinner.spin());
            }
            try {
                await().until(() -> spinning.spinning.get() >= carriers);
                assertNeverLonger(first.timesOnPool());
                long took = cancelled(first.blockOnPoolLater(), 1);
                // handlers on virtual threads wait for a carrier; their callers do not wait with them
                long begin = System.nanoTime();
                assertThatThrownBy(spinner::count)
                        .isInstanceOfSatisfying(
                                RPCXException.class,
                                e -> assertThat(e.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED));
                long late = System.nanoTime() - begin - TimeUnit.MILLISECONDS.toNanos(200);
                assertThat(late).isBetween(0L, TimeUnit.SECONDS.toNanos(2));
                LongForm.figure(
                        8,
                        "with all carrier threads busy: cancel at the fifth hop after %.1f ms, a deadline kept within %.1f ms",
                        took / 1e6,
                        late / 1e6);
            } finally {
                spinning.over = true;
            }
            spins.forEach(CompletableFuture::join);
            spinner.countPatiently();
            // the call whose time was over before it could begin has not been executed
            assertThat(spinning.executed).hasValue(1);
        }
    }
}
