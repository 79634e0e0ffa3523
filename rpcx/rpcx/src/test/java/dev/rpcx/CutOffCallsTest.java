package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.ServerConnection;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests what happens to the calls of a server whose time for stopping is over, and to notices whose own time is over.
 */
@Timeout(60)
class CutOffCallsTest {
    private static final int FIRST = 1 << 16;

    /** A parameter whose own code runs when it is read. */
    record Told(String text) {
        static Runnable asItIsRead = () -> {};

        Told {
            asItIsRead.run();
        }
    }

    @RPCXServer("cut")
    static final class Service {
        final List<CompletableFuture<String>> waiting = new ArrayList<>();
        final List<String> told = new ArrayList<>();
        Runnable within = () -> {};
        int begun;

        @Method
        String echo(String text) {
            begun++;
            within.run();
            return text;
        }

        @Method
        String told(Told told) {
            begun++;
            return told.text();
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        String pooled(String text) {
            begun++;
            return text;
        }

        @Method
        CompletionStage<String> later(String text) {
            CallContext.current().orElseThrow().onCancel(() -> told.add(text));
            CompletableFuture<String> result = new CompletableFuture<>();
            waiting.add(result);
            return result;
        }
    }

    private final Service service = new Service();
    private final HandPlatform hand = new HandPlatform();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .platform(hand)
            .poolSize(1)
            .build()
            .start();
    private final EmbeddedChannel channel = hand.accept();

    @BeforeEach
    void greet() {
        send(RawPeer.preface());
    }

    @AfterEach
    void nothingIsLeft() {
        channel.close();
        hand.handleAll(channel);
        service.waiting.forEach(result -> result.complete("late"));
        hand.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        assertThat(server.core().running()).isZero();
        assertThat(server.core().served()).isZero();
        assertThat(server.core().ledger().audit()).isEmpty();
        assertThat(hand.heldBytes()).isZero();
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        hand.read(channel, all, 0, all.length);
    }

    private void call(int type, int slot, String method, String text, Duration time) {
        ByteBuf payload = RawPeer.prelude("cut", method);
        Varint.write(payload, TimeUnit.NANOSECONDS.toMicros(time.toNanos()));
        payload.writeBytes(RawPeer.text(text));
        send(RawPeer.frame(type | Wire.NAMED | Wire.TIME, FIRST + slot, payload));
    }

    private void call(int type, int slot, String method, String text) {
        call(type, slot, method, text, Duration.ofSeconds(10));
    }

    private ServerConnection connection() {
        return Objects.requireNonNull(channel.pipeline().get(ServerConnection.class));
    }

    private void pass(Duration time) {
        hand.pass(channel, time.toNanos(), TimeUnit.NANOSECONDS);
    }

    /**
     * The log names no notice that was cancelled before, and no call, since somebody has already learned of their ends.
     */
    @Test
    void noticesThatAreCutOffAreToldOfInTheLogAndNoOthers() {
        call(Wire.NOTICE, 0, "later", "its time is over", Duration.ofSeconds(1));
        call(Wire.REQUEST, 1, "later", "its caller is gone");
        call(Wire.NOTICE, 2, "later", "it is cut off");
        hand.handleAll(channel);
        pass(Duration.ofSeconds(1));
        send(RawPeer.frame(Wire.CANCEL, FIRST + 1, Unpooled.EMPTY_BUFFER));
        hand.handleAll(channel);
        // the one thread of the pool is about to begin the first
        call(Wire.NOTICE, 3, "pooled", "a");
        call(Wire.NOTICE, 4, "pooled", "b");
        call(Wire.NOTICE, 5, "pooled", "c");
        assertThat(server.core().running()).isEqualTo(6);
        ServerConnection connection = connection();
        List<String> failed = ServerLog.of(() -> {
            connection.cutOff();
            hand.settle(channel);
        });
        assertThat(failed).singleElement().asString().startsWith("a notice of cut/pooled failed as UNAVAILABLE");
        assertThat(channel.isOpen()).isFalse();
        assertThat(server.core().running()).isZero();
        assertThat(server.core().ledger().held(Resource.TIMERS)).isZero();
        assertThat(server.core().served())
                .as("a thread is about to come to one")
                .isEqualTo(1);
        hand.handleAll(channel);
        assertThat(server.core().served()).isZero();
        assertThat(service.begun).isZero();
        assertThat(service.told).containsExactly("its time is over", "its caller is gone", "it is cut off");
        server.core().drain(Duration.ofMinutes(1));
        hand.runTimers();
        assertThat(ServerLog.of(() -> server.stop(Duration.ZERO)))
                .singleElement()
                .asString()
                .endsWith(": 3 were not executed, 1 were interrupted");
    }

    @Test
    void aHandlerThatIsCutOffIsInterruptedAndKnownUntilItHasEnded() {
        List<Object> seen = new ArrayList<>();
        ServerConnection connection = connection();
        service.within = () -> {
            connection.cutOff();
            hand.settle(channel);
            seen.add(Thread.interrupted());
            // the callback of the other notice runs, and that notice is over with it
            hand.handle(0);
            hand.settle(channel);
            seen.add(server.core().served());
        };
        call(Wire.NOTICE, 0, "echo", "a");
        call(Wire.NOTICE, 1, "later", "a future that is given up behind it");
        hand.handle(1);
        hand.handleAll(channel);
        assertThat(seen).containsExactly(true, 1);
        assertThat(server.core().served()).isZero();
    }

    /** The event loop has not learned yet that the time is over. */
    @Test
    void noHandlerBeginsBehindTheEndOfTheTimeForStopping() {
        call(Wire.NOTICE, 0, "echo", "a");
        server.core().drain(Duration.ZERO);
        hand.runTimers();
        List<String> failed = ServerLog.of(() -> hand.handle(0));
        assertThat(service.begun).isZero();
        assertThat(failed).singleElement().asString().startsWith("a notice of cut/echo failed as UNAVAILABLE");
    }

    @Test
    void aNoticeThatFindsNoThreadInItsTimeIsTakenBackAndToldOfInTheLog() {
        call(Wire.NOTICE, 0, "pooled", "a", Duration.ofSeconds(30));
        call(Wire.NOTICE, 1, "pooled", "b");
        assertThat(server.core().running()).isEqualTo(2);
        List<String> logged = ServerLog.of(() -> pass(Duration.ofSeconds(10)));
        assertThat(logged).singleElement().asString().startsWith("a notice of cut/pooled failed as DEADLINE_EXCEEDED");
        assertThat(server.core().running()).isEqualTo(1);
        hand.handleAll(channel);
        assertThat(service.begun).isEqualTo(1);
        channel.close();
        assertThat(server.core().served()).isZero();
    }

    @Test
    void aConnectionIsKnownUntilTheHandlerOfANoticeWhoseTimeIsOverHasEnded() {
        List<Object> seen = new ArrayList<>();
        service.within = () -> {
            pass(Duration.ofSeconds(10));
            seen.add(Thread.interrupted());
            channel.close();
            seen.add(server.core().served());
        };
        call(Wire.NOTICE, 0, "echo", "a");
        hand.handleAll(channel);
        assertThat(seen).containsExactly(true, 1);
        assertThat(server.core().served()).isZero();
    }

    @Test
    void aCallThatIsCancelledWhileItsRequestIsReadDoesNotBegin() {
        ByteBuf told = RawPeer.prelude("cut", "told");
        ByteBuf fields = RawPeer.text("a");
        told.writeByte(1 << 3 | 2).writeByte(fields.readableBytes()).writeBytes(fields);
        send(RawPeer.frame(Wire.REQUEST | Wire.NAMED, FIRST, told));
        List<String> read = new ArrayList<>();
        Told.asItIsRead = () -> {
            read.add("read");
            send(RawPeer.frame(Wire.CANCEL, FIRST, Unpooled.EMPTY_BUFFER));
        };
        try {
            hand.handleAll(channel);
        } finally {
            Told.asItIsRead = () -> {};
        }
        assertThat(read).hasSize(1);
        assertThat(service.begun).isZero();
        assertThat(server.core().running()).isZero();
    }
}
