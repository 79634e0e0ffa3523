package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests handlers that return futures and whose callers are gone. They are notified, and do not count forever. */
@Timeout(60)
class GoneCallersTest {
    private static final int FIRST = 1 << 16;

    /** A stage that breaks the rules: it throws in {@code whenComplete}, or runs the callback twice. */
    private static final class Odd extends CompletableFuture<String> {
        private final boolean throwsAtOnce;

        Odd(boolean throwsAtOnce) {
            this.throwsAtOnce = throwsAtOnce;
        }

        @Override
        public CompletableFuture<String> whenComplete(BiConsumer<? super String, ? super Throwable> action) {
            if (throwsAtOnce) {
                throw new IllegalStateException("no callbacks here");
            }
            action.accept("once", null);
            action.accept("twice", null);
            return this;
        }
    }

    @RPCXServer("gone")
    static final class Service {
        final CompletableFuture<String> poll = new CompletableFuture<>();
        final AtomicInteger entered = new AtomicInteger();
        final AtomicInteger blocking = new AtomicInteger();
        final AtomicInteger told = new AtomicInteger();
        final CompletableFuture<Boolean> interrupted = new CompletableFuture<>();

        @Method
        public CompletableFuture<String> poll() {
            CallContext.current().orElseThrow().onCancel(told::incrementAndGet);
            entered.incrementAndGet();
            return poll;
        }

        @Method
        public CompletionStage<String> never() {
            entered.incrementAndGet();
            return new CompletableFuture<String>().minimalCompletionStage();
        }

        @Method
        public CompletableFuture<String> odd(String how) {
            return new Odd(how.equals("throws"));
        }

        @Method
        public void block() throws InterruptedException {
            blocking.incrementAndGet();
            try {
                new CountDownLatch(1).await();
            } finally {
                interrupted.complete(true);
            }
        }
    }

    private final Service service = new Service();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .host("127.0.0.1")
            .eventLoops(1)
            .build()
            .start();

    @AfterEach
    void stop() {
        server.stop(Duration.ofMillis(200));
    }

    private RawPeer greeted() throws IOException {
        RawPeer raw = new RawPeer(server.port());
        raw.send(RawPeer.preface());
        raw.readPreface();
        return raw;
    }

    private static ByteBuf timed(int type, int id, String method, long millis) {
        ByteBuf payload = RawPeer.prelude("gone", method);
        Varint.write(payload, millis * 1000);
        return RawPeer.frame(type | Wire.NAMED | Wire.TIME, id, payload);
    }

    @Test
    void aHandlerIsToldThatItsCallerIsGoneAndItsFutureIsLeftAlone() throws Exception {
        try (RawPeer raw = greeted()) {
            raw.send(timed(Wire.REQUEST, FIRST, "poll", 60_000));
            await().until(() -> service.entered.get() == 1);
            raw.send(RawPeer.frame(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER));
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.ERROR);
            await().until(() -> service.told.get() == 1 && server.core().running() == 0);
            assertThat(service.poll).isNotDone();
        }
        service.poll.complete("nobody hears of it");
    }

    @Test
    void aFutureThatNeverEndsIsNotCountedWhenItsCallerIsGone() throws Exception {
        try (RawPeer raw = greeted()) {
            AtomicInteger ids = new AtomicInteger(FIRST);
            // the time may be over before the handler has begun
            Again.inTwiceTheTime(20, millis -> {
                raw.send(timed(Wire.REQUEST, ids.getAndIncrement(), "never", millis));
                assertThat(raw.readAnswer().type()).isEqualTo(Wire.ERROR);
                await().until(() -> server.core().running() == 0);
                return service.entered.get() == 1;
            });
            raw.send(timed(Wire.REQUEST, ids.get(), "never", 60_000));
            await().until(() -> service.entered.get() == 2);
        }
        await().until(() -> {
            // what a future has stays charged until nobody can reach the future
            System.gc();
            return server.core().running() == 0
                    && server.core().ledger().audit().isEmpty();
        });
    }

    @Test
    void aNoticeIsCancelledWhenItsTimeIsOver() throws Exception {
        try (RawPeer raw = greeted()) {
            untilOverInTheHandler(raw, FIRST, "block", service.blocking);
            assertThat(service.interrupted).isCompletedWithValue(true);
            untilOverInTheHandler(raw, 2 * FIRST, "never", service.entered);
        }
    }

    /** Sends notices with more and more time, until the time of one is over only after its handler has begun. */
    private void untilOverInTheHandler(RawPeer raw, int first, String method, AtomicInteger begun) throws Exception {
        AtomicInteger ids = new AtomicInteger(first);
        Again.inTwiceTheTime(50, millis -> {
            raw.send(timed(Wire.NOTICE, ids.getAndIncrement(), method, millis));
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.REPLY);
            await().until(() -> server.core().running() == 0);
            return begun.get() == 1;
        });
    }

    @Test
    void aStageThatTakesNoCallbackOrEndsTwiceEndsItsCallOnce() throws Exception {
        try (RawPeer raw = greeted()) {
            raw.send(RawPeer.request(FIRST, "gone", "odd", "throws"));
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.ERROR);
            raw.send(RawPeer.request(2 * FIRST, "gone", "odd", "twice"));
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.REPLY);
            raw.send(RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER));
            assertThat(raw.readAnswer().type()).isEqualTo(Wire.PONG);
            assertThat(server.core().running()).isZero();
        }
    }
}
