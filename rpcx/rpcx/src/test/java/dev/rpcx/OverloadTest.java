package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.server.AdmissionLimit;
import dev.rpcx.internal.server.FloodGuard;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests a server that gets more calls than it can finish, and clients that send what costs them nothing. */
@Timeout(300)
class OverloadTest {
    /** A caller makes 2,500 calls a second. If one call is later than this, the machine has held the caller up. */
    private static final long HELD_UP_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    @RPCXServer("busy")
    static final class Busy {
        final CountDownLatch release = new CountDownLatch(1);
        final AtomicLong executed = new AtomicLong();

        /** Two calls run at a time and take 4 ms each, which makes 500 calls a second. */
        private final java.util.concurrent.Semaphore workers = new java.util.concurrent.Semaphore(2, true);

        @Method
        String hello(String name) {
            return name;
        }

        @Method
        void block() throws InterruptedException {
            release.await();
        }

        @Method
        void work() throws InterruptedException {
            workers.acquire();
            try {
                executed.incrementAndGet();
                java.util.concurrent.locks.LockSupport.parkNanos(4_000_000);
            } finally {
                workers.release();
            }
        }
    }

    @RPCXClient(remoteServerName = "busy")
    interface BusyClient {
        String hello(String name);

        CompletableFuture<Void> block();

        @Method(timeoutMillis = 200)
        CompletableFuture<Void> work();
    }

    private static Server.Builder serving(Busy busy) {
        return Server.builder(RegistryServer.registry(busy)).host("127.0.0.1");
    }

    @Test
    void oneCallMoreThanMayRunIsRefusedNotExecuted() {
        // one connection may have as many of the eight handlers as are still free, and one more
        Busy busy = new Busy();
        Server server = serving(busy).maxRunning(8).build().start();
        try (Client client = Client.standard()) {
            BusyClient calls = client.create(BusyClient.class, "127.0.0.1", server.port());
            List<CompletableFuture<Void>> running = new ArrayList<>();
            for (int i = 0; i < 5; i++) {
                running.add(calls.block());
            }
            await().until(() -> server.core().running() == 5);
            assertThatThrownBy(() -> calls.hello("one more")).isInstanceOfSatisfying(RPCXException.class, e -> {
                assertThat(e.code()).isEqualTo(RPCXException.Code.OVERLOADED);
                assertThat(e.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            });
            busy.release.countDown();
            running.forEach(CompletableFuture::join);
            await().until(() -> server.core().running() == 0);
            assertThat(calls.hello("again")).isEqualTo("again");
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    /** This record says how the calls of the second half have ended. */
    private record Overload(int inTime, int refused, int late, long executed, int lowestLimit) {}

    /**
     * The server gets five times the calls that it can finish, and each has 200 ms. Without a limit, nearly every call
     * would be served too late.
     */
    @Test
    void inOverloadTheLimitSinksAndWhatIsTakenIsFinishedInTime() throws Exception {
        int seconds = LongForm.of(4, 20);
        // Each call has 200 ms, and the server needs a processor all the time. A pause of 10 ms says that the machine
        // did other things.
        Again.upToFiveTimes(10, () -> assertFinishedInTime(seconds));
    }

    private static void assertFinishedInTime(int seconds) throws Exception {
        Overload seen = overload(seconds);
        LongForm.figure(
                7,
                "overload ×5, the second half of %d s: %d in time of some %d possible, %d refused, %d late;"
                        + " lowest limit %d",
                seconds,
                seen.inTime,
                250 * seconds,
                seen.refused,
                seen.late,
                seen.lowestLimit);
        assertThat(seen.lowestLimit).isLessThan(500);
        // the bound is loose, since the machine may do other things as well
        assertThat(seen.inTime).isGreaterThan(125 * seconds);
        // most of the calls that were executed are in time. Whenever the machine stands still, all calls under way are
        // late. Tests with a simulated clock check how few other calls are late.
        assertThat(seen.inTime).isGreaterThan((int) (0.75 * seen.executed));
        assertThat(seen.late).isLessThan(seen.inTime / 3);
    }

    private static Overload overload(int seconds) throws Exception {
        Busy busy = new Busy();
        Server server = serving(busy).build().start();
        AdmissionLimit limit = java.util.Objects.requireNonNull(
                java.util.Objects.requireNonNull(server.core().method(MethodDictionary.key("busy", "work")))
                        .admission());
        try (Client client = Client.standard()) {
            BusyClient calls = client.create(BusyClient.class, "127.0.0.1", server.port());
            AtomicInteger inTime = new AtomicInteger();
            AtomicInteger refused = new AtomicInteger();
            AtomicInteger late = new AtomicInteger();
            AtomicInteger lowest = new AtomicInteger(Integer.MAX_VALUE);
            long due = System.nanoTime();
            List<CompletableFuture<?>> all = new ArrayList<>();
            long executedBefore = 0;
            for (int i = 0; i < 2500 * seconds; i++) {
                due += 400_000;
                for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
                    java.util.concurrent.locks.LockSupport.parkNanos(left);
                }
                long behindNanos = System.nanoTime() - due;
                if (behindNanos > HELD_UP_NANOS) {
                    // a caller that was held up goes on from here, since sending all missed calls at once would be
                    // another overload
                    due += behindNanos;
                }
                boolean counts = i >= 1250 * seconds;
                if (i == 1250 * seconds) {
                    // calls of the first half that are still under way do not belong to the second half
                    executedBefore = busy.executed.get() + server.core().running();
                }
                lowest.accumulateAndGet(limit.limit(), Math::min);
                try {
                    all.add(calls.work().handle((done, thrown) -> {
                        boolean isRefused =
                                thrown instanceof RPCXException e && e.code() == RPCXException.Code.OVERLOADED;
                        if (!counts) {
                            return null;
                        }
                        (thrown == null ? inTime : isRefused ? refused : late).incrementAndGet();
                        return null;
                    }));
                } catch (RPCXException noSlot) {
                    refused.addAndGet(counts ? 1 : 0);
                }
            }
            CompletableFuture.allOf(all.toArray(new CompletableFuture<?>[0])).get(20, TimeUnit.SECONDS);
            long executed = busy.executed.get() - executedBefore;
            await().until(() -> server.core().running() == 0);
            return new Overload(inTime.get(), refused.get(), late.get(), executed, lowest.get());
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    private static void expectEnd(Server server, ByteBuf flood, String why) throws Exception {
        try (RawPeer raw = new RawPeer(server.port())) {
            raw.send(RawPeer.preface());
            raw.readPreface();
            raw.send(flood);
            RawPeer.Frame frame = raw.readAnswer();
            while (frame.type() != Wire.ERROR) {
                frame = raw.readAnswer();
            }
            assertThat(frame.id()).isZero();
            RPCXException error = WireError.read(Unpooled.wrappedBuffer(frame.payload()));
            assertThat(error.code()).isEqualTo(RPCXException.Code.PROTOCOL);
            assertThat(error).hasMessageContaining(why);
            raw.readToEnd();
        }
    }

    private static ByteBuf times(int count, ByteBuf frame) {
        ByteBuf all = Unpooled.buffer();
        for (int i = 0; i < count; i++) {
            all.writeBytes(frame.duplicate());
        }
        return all;
    }

    @Test
    void floodsOfPingsCancelsAndSettingsEndTheirConnectionAndNoOther() throws Exception {
        Server server = serving(new Busy()).build().start();
        try (Client client = Client.standard()) {
            BusyClient calls = client.create(BusyClient.class, "127.0.0.1", server.port());
            assertThat(calls.hello("before")).isEqualTo("before");
            ByteBuf none = Unpooled.EMPTY_BUFFER;
            // this is three times what is too much in a second, because the second that began with the connection and
            // the next one may be over when the frames are read. FloodGuardTest has the exact numbers
            expectEnd(
                    server,
                    times(3 * (FloodGuard.MAX_PINGS_PER_SECOND + 1), RawPeer.frame(Wire.PING, 0, none)),
                    "pings");
            expectEnd(server, times(FloodGuard.MAX_SETTINGS + 1, RawPeer.frame(Wire.SETTINGS, 0, none)), "settings");
            expectEnd(
                    server,
                    times(3 * (FloodGuard.MAX_CANCELS_PER_SECOND + 1), RawPeer.frame(Wire.CANCEL, 1 << 16, none)),
                    "cancels");
            assertThat(calls.hello("after")).isEqualTo("after");
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    @Test
    void connectionsBeyondTheLimitOfAnAddressAreClosedBeforeAWordIsSaid() throws Exception {
        Server server = serving(new Busy()).maxConnectionsPerAddress(2).build().start();
        try (RawPeer one = new RawPeer(server.port());
                RawPeer two = new RawPeer(server.port())) {
            one.send(RawPeer.preface());
            one.readPreface();
            two.send(RawPeer.preface());
            two.readPreface();
            try (RawPeer three = new RawPeer(server.port())) {
                assertThat(three.readToEnd()).isEmpty();
            }
            two.socket.close();
            await().until(() -> {
                try (RawPeer three = new RawPeer(server.port())) {
                    three.send(RawPeer.preface());
                    three.readPreface();
                    return true;
                } catch (java.io.IOException refused) {
                    return false;
                }
            });
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }

    @Test
    void aClientThatDoesNotEndItsPrefaceIsDisconnected() throws Exception {
        Server server =
                serving(new Busy()).keepAlive(Duration.ofMillis(300)).build().start();
        try (RawPeer raw = new RawPeer(server.port())) {
            raw.send(Unpooled.buffer().writeByte(Wire.MAGIC >>> 24));
            assertThat(raw.readToEnd()).isEmpty();
        } finally {
            server.stop(Duration.ofMillis(200));
        }
    }
}
