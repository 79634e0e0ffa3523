package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.ClassicWire;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what a server does from the call of {@code stop} until that call returns. */
@Timeout(60)
class StopTest {
    private static final int NOTES = 40;

    /** This is a fifth of the second that a stop waits for handlers that it has interrupted. */
    private static final Duration STILL = Duration.ofMillis(200);

    @RPCXServer("stop")
    static final class Service {
        final Semaphore permits = new Semaphore(0);
        final AtomicInteger done = new AtomicInteger();
        final AtomicInteger begun = new AtomicInteger();
        final CountDownLatch inLoop = new CountDownLatch(1);
        final CountDownLatch releaseLoop = new CountDownLatch(1);
        final CompletableFuture<String> never = new CompletableFuture<>();

        private void note() {
            begun.incrementAndGet();
            try {
                permits.acquire();
                done.incrementAndGet();
            } catch (InterruptedException e) {
                // it has been cut off
            }
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        void onPool() {
            note();
        }

        @Method
        void onVirtual() {
            note();
        }

        /** Returns a future that ends only if the test completes it. */
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletableFuture<String> inLoop() {
            begun.incrementAndGet();
            return never;
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String blocks() throws InterruptedException {
            inLoop.countDown();
            releaseLoop.await();
            return "late";
        }

        @Method
        String waits() throws InterruptedException {
            begun.incrementAndGet();
            permits.acquire();
            return "done";
        }

        /** Ignores interrupts. */
        @Method
        @RunOn(RunOn.Place.POOL)
        String deaf() {
            begun.incrementAndGet();
            permits.acquireUninterruptibly();
            return "done";
        }
    }

    @RPCXClient(remoteServerName = "stop")
    interface StopClient {
        @OneWay
        void onPool();

        @OneWay
        void onVirtual();

        @OneWay
        void inLoop();

        CompletableFuture<String> waits();

        CompletableFuture<String> deaf();
    }

    enum Place {
        POOL,
        VIRTUAL;

        void note(StopClient to) {
            if (this == POOL) {
                to.onPool();
            } else {
                to.onVirtual();
            }
        }
    }

    private final Service service = new Service();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .host("127.0.0.1")
            .classic(true)
            .eventLoops(2)
            .poolSize(4)
            .build();

    @AfterEach
    void nothingIsLeft() {
        service.permits.release(10 * NOTES);
        service.releaseLoop.countDown();
        server.stop(Duration.ofMillis(100));
        await().until(() -> server.core().running() == 0);
        service.never.complete("late");
        await().until(() -> server.core().ledger().audit().isEmpty());
    }

    private StopClient of(Client client) {
        return client.create(StopClient.class, "127.0.0.1", server.port());
    }

    private static CompletableFuture<Void> elsewhere(Runnable task) {
        CompletableFuture<Void> done = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                task.run();
                done.complete(null);
            } catch (Throwable t) {
                done.completeExceptionally(t);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return done;
    }

    private static void awaitStop(Server server) {
        try {
            server.awaitStop();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static boolean takesConnections(int port) {
        try (RawPeer peer = new RawPeer(port)) {
            return peer.socket.isConnected();
        } catch (IOException refused) {
            return false;
        }
    }

    private long held(Resource kind) {
        return server.core().ledger().held(kind);
    }

    /** Makes one-way calls, and waits until all of them run. Each call returns when the server has it. */
    private void note(Client client, Place place) {
        StopClient calls = of(client);
        for (int i = 0; i < NOTES; i++) {
            place.note(calls);
        }
        await().until(() -> server.core().running() == NOTES);
    }

    @ParameterizedTest
    @EnumSource(Place.class)
    void oneWayCallsThatItHasAreDoneBeforeItReturns(Place place) throws Exception {
        server.start();
        try (Client client = Client.standard()) {
            note(client, place);
            CompletableFuture<Void> stopped = elsewhere(() -> server.stop(Duration.ofSeconds(40)));
            await().until(() -> server.core().connections() == 0);
            service.permits.release(NOTES - 1);
            await().until(() -> service.done.get() == NOTES - 1);
            assertThat(stopped).isNotDone();
            service.permits.release();
            stopped.get(20, TimeUnit.SECONDS);
            assertThat(service.done).hasValue(NOTES);
            assertThat(server.core().ledger().audit()).isEmpty();
        }
    }

    /** Returns what the server logs while {@code stop} runs. */
    private static List<String> logged(Runnable stop) {
        List<String> logged = new CopyOnWriteArrayList<>();
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord line) {
                logged.add(line.getMessage());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        Logger logger = Logger.getLogger(Server.class.getName());
        logger.addHandler(handler);
        logger.setUseParentHandlers(false);
        try {
            stop.run();
        } finally {
            logger.removeHandler(handler);
            logger.setUseParentHandlers(true);
        }
        return logged;
    }

    @Test
    void aLoggerThatThrowsKeepsNobodyWaitingForTheEnd() {
        server.start();
        Handler failing = new Handler() {
            @Override
            public void publish(LogRecord line) {
                throw new IllegalStateException("by the test");
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        Logger logger = Logger.getLogger(Server.class.getName());
        logger.addHandler(failing);
        logger.setUseParentHandlers(false);
        try (Client client = Client.standard()) {
            Place.VIRTUAL.note(of(client));
            await().until(() -> service.begun.get() == 1);
            server.stop(Duration.ofMillis(50));
        } finally {
            logger.removeHandler(failing);
            logger.setUseParentHandlers(true);
        }
        elsewhere(() -> awaitStop(server)).orTimeout(10, TimeUnit.SECONDS).join();
    }

    @Test
    void oneWayCallsWhoseInterceptorHasNotGoneOnAreCountedAsNotExecuted() {
        Server held = Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .interceptor((call, next) -> new CompletableFuture<>())
                .build()
                .start();
        try (Client client = Client.standard()) {
            StopClient calls = client.create(StopClient.class, "127.0.0.1", held.port());
            for (int i = 0; i < NOTES; i++) {
                Place.VIRTUAL.note(calls);
            }
            await().until(() -> held.core().running() == NOTES);
            assertThat(logged(() -> held.stop(Duration.ofMillis(50))))
                    .anyMatch(line -> line.contains(NOTES + " were not executed, 0 were interrupted"));
        }
        assertThat(service.begun).hasValue(0);
    }

    @Test
    void oneWayCallsThatAreNotDoneInItsTimeAreCutOffAndCountedInTheLog() {
        List<Thread> others = handlerThreads();
        server.start();
        List<String> logged;
        boolean wasStill;
        try (Client client = Client.standard();
                StandStill still = new StandStill()) {
            note(client, Place.POOL);
            await().until(() -> service.begun.get() == 3);
            logged = logged(() -> server.stop(Duration.ofMillis(50)));
            wasStill = still.was(STILL);
        }
        assertThat(logged).anyMatch(line -> line.contains(NOTES - 3 + " were not executed, 3 were interrupted"));
        assertThat(service.done).hasValue(0);
        assertThat(service.begun).as("no other has begun").hasValue(3);
        assertBehindAStop(wasStill, () -> {
            assertThat(server.core().running()).isZero();
            assertThat(server.core().ledger().audit()).isEmpty();
            assertThat(handlerThreads()).allMatch(others::contains);
        });
    }

    /**
     * Asserts what has to hold after a stop. A stop waits a second for the end of handlers that it has interrupted, so
     * this holds when the stop has returned. If the machine stood still meanwhile, it holds when the handlers have
     * ended.
     */
    private static void assertBehindAStop(boolean wasStill, Runnable left) {
        if (wasStill) {
            await().untilAsserted(left::run);
        } else {
            left.run();
        }
    }

    private static List<Thread> handlerThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("rpcx-handler"))
                .toList();
    }

    @Test
    void aOneWayCallWhoseFutureDoesNotEndIsWaitedForToo() {
        server.start();
        try (Client client = Client.standard()) {
            of(client).inLoop();
            await().until(() -> service.begun.get() == 1);
            CompletableFuture<Void> stopped = elsewhere(() -> server.stop(Duration.ofSeconds(40)));
            await().until(() -> server.core().connections() == 0);
            assertThat(stopped).isNotDone();
            service.never.complete("now");
            stopped.join();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void aHandlerThatBlocksItsEventLoopHoldsAStopForASecondOrSo(int loops) throws Exception {
        Server blocked = Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .eventLoops(loops)
                .build()
                .start();
        try (RawPeer peer = new RawPeer(blocked.port())) {
            peer.send(RawPeer.preface());
            peer.send(RawPeer.frame(Wire.REQUEST | Wire.NAMED, 1 << 16, RawPeer.prelude("stop", "blocks")));
            service.inLoop.await();
            elsewhere(() -> blocked.stop(Duration.ofMillis(100))).get(20, TimeUnit.SECONDS);
            elsewhere(() -> awaitStop(blocked)).get(20, TimeUnit.SECONDS);
        } finally {
            service.releaseLoop.countDown();
        }
        await().until(() -> blocked.core().ledger().audit().isEmpty());
        // the handler blocks on purpose, so its report is not a fault
        LoopChecker.REPORTS.removeIf(report -> report.contains("StopTest$Service.blocks"));
    }

    /** The calls have come, and their handlers wait for their loop. */
    @Test
    void noHandlerOfAnEventLoopBeginsAfterwards() throws Exception {
        Server blocked = Server.builder(RegistryServer.registry(service))
                .host("127.0.0.1")
                .eventLoops(1)
                .build()
                .start();
        try (RawPeer peer = new RawPeer(blocked.port())) {
            ByteBuf calls = Unpooled.buffer().writeBytes(RawPeer.preface());
            calls.writeBytes(RawPeer.frame(Wire.REQUEST | Wire.NAMED, 1 << 16, RawPeer.prelude("stop", "blocks")));
            for (int i = 1; i < 20; i++) {
                calls.writeBytes(
                        RawPeer.frame(Wire.REQUEST | Wire.NAMED, 1 << 16 | i, RawPeer.prelude("stop", "inLoop")));
            }
            peer.send(calls);
            service.inLoop.await();
            elsewhere(() -> blocked.stop(Duration.ZERO)).get(20, TimeUnit.SECONDS);
        } finally {
            service.releaseLoop.countDown();
        }
        await().until(() -> blocked.core().ledger().audit().isEmpty());
        assertThat(service.begun.get()).isZero();
        LoopChecker.REPORTS.removeIf(report -> report.contains("StopTest$Service.blocks"));
    }

    @Test
    void aHandlerThatHeedsNoInterruptHoldsItNoLonger() throws Exception {
        server.start();
        try (Client client = Client.standard()) {
            of(client).deaf();
            await().until(() -> service.begun.get() == 1);
            elsewhere(() -> server.stop(Duration.ofMillis(50))).get(20, TimeUnit.SECONDS);
        }
    }

    @Test
    void itIsNotStartedAfterwards() {
        server.stop();
        assertThatThrownBy(server::start)
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("the server was stopped before (expected: a new one)");
        assertThatThrownBy(server::port).isInstanceOf(IllegalStateException.class);
        server.stop();
    }

    @Test
    void awaitStopOfAServerThatWasNeverStartedIsRefusedAndOfOneThatHasStoppedReturns() throws Exception {
        assertThatThrownBy(server::awaitStop)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("was not started (expected: start");
        server.stop();
        server.awaitStop();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whileItDrainsItAnswersAndASecondStopWithLessTimeEndsBoth(boolean isClassic) throws Exception {
        server.start();
        int port = server.port();
        try (Client client = isClassic ? Client.builder().classic().build() : Client.standard()) {
            CompletableFuture<String> call = of(client).waits();
            await().until(() -> service.begun.get() == 1);
            CompletableFuture<Void> first = elsewhere(() -> server.stop(Duration.ofHours(1)));
            CompletableFuture<Void> waits = elsewhere(() -> awaitStop(server));
            await().until(() -> !takesConnections(port));
            CompletableFuture<Integer> asked = new CompletableFuture<>();
            elsewhere(() -> asked.complete(server.port()));
            assertThat(asked.get(20, TimeUnit.SECONDS)).isEqualTo(port);
            assertThat(first).isNotDone();
            elsewhere(() -> server.stop(Duration.ZERO)).get(20, TimeUnit.SECONDS);
            first.get(20, TimeUnit.SECONDS);
            waits.get(20, TimeUnit.SECONDS);
            await().atMost(Duration.ofSeconds(20)).until(call::isCompletedExceptionally);
        }
    }

    @Test
    void aClassicClientIsToldAtTheEndOfItsTime() throws Exception {
        server.start();
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(ClassicRequests.of(1, "stop", "waits", List.of(), List.of()));
            await().until(() -> service.begun.get() == 1);
            CompletableFuture<Void> stopped = elsewhere(() -> server.stop(Duration.ofMillis(50)));
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(peer.readToEnd()));
            byte[] last = new byte[in.readInt()];
            in.readFully(last);
            ClassicWire.Reply reply = ClassicWire.readReply(Unpooled.wrappedBuffer(last));
            assertThat(reply.id()).isZero();
            assertThat(reply.error()).satisfies(why -> {
                assertThat(why.code()).isEqualTo(RPCXException.Code.UNAVAILABLE);
                assertThat(why.executed()).isEqualTo(RPCXException.Executed.MAYBE);
            });
            assertThat(in.read()).isEqualTo(-1);
            stopped.get(20, TimeUnit.SECONDS);
        }
    }

    @Test
    void whatIsHeldByOneWayCallsIsGivenBack() {
        server.start();
        try (Client client = Client.standard()) {
            note(client, Place.POOL);
        }
        await().until(() -> server.core().connections() == 0);
        boolean wasStill;
        try (StandStill still = new StandStill()) {
            server.stop(Duration.ZERO);
            wasStill = still.was(STILL);
        }
        assertBehindAStop(wasStill, () -> {
            assertThat(held(Resource.CALLS)).isZero();
            assertThat(held(Resource.ORPHANS)).isZero();
            assertThat(server.core().running()).isZero();
        });
    }

    /** In process a closed channel has no address, so that a server which asked it would have no port for a moment. */
    @Test
    void aServerSaysItsPortUntilItsStopHasEnded() throws Exception {
        for (int round = 0; round < 200; round++) {
            Server stopping = Server.builder(RegistryServer.registry(new Service()))
                    .inProcess()
                    .port(7_071)
                    .build()
                    .start();
            CompletableFuture<Void> stop = CompletableFuture.runAsync(() -> stopping.stop(Duration.ofSeconds(20)));
            while (!stop.isDone()) {
                try {
                    assertThat(stopping.port()).isEqualTo(7_071);
                } catch (IllegalStateException stopped) {
                    break;
                }
            }
            stop.get(20, TimeUnit.SECONDS);
            assertThatThrownBy(stopping::port)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("the server does not listen");
        }
    }
}
