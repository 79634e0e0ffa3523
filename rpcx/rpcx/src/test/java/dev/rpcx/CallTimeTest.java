package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the largest time that a server lets a call take, under a simulated clock. */
@Timeout(60)
class CallTimeTest {
    private static final int ID = 1 << 16;
    private static final long FOR_EVER_MICROS = 1L << 50;
    private static final Duration MAX = Duration.ofMinutes(5);

    @RPCXServer("timed")
    static final class Service {
        final List<CompletableFuture<String>> waiting = new ArrayList<>();
        final List<Long> left = new ArrayList<>();
        int told;

        @Method
        CompletableFuture<String> waits() {
            CallContext context = CallContext.current().orElseThrow();
            left.add(context.remainingNanos());
            context.onCancel(() -> told++);
            CompletableFuture<String> result = new CompletableFuture<>();
            waiting.add(result);
            return result;
        }

        @Method
        Flow.Publisher<String> brings() {
            left.add(CallContext.current().orElseThrow().remainingNanos());
            return subscriber -> subscriber.onSubscribe(new Flow.Subscription() {
                @Override
                public void request(long items) {}

                @Override
                public void cancel() {
                    told++;
                }
            });
        }
    }

    private final HandPlatform platform = new HandPlatform();
    private final Service service = new Service();
    private Server server = serving(MAX);
    private EmbeddedChannel channel = platform.accept();

    private Server serving(Duration most) {
        return Server.builder(RegistryServer.registry(service))
                .platform(platform)
                .keepAlive(Duration.ofHours(1))
                .classic(true)
                .maxCallTime(most)
                .build()
                .start();
    }

    @AfterEach
    void end() {
        channel.close();
        service.waiting.forEach(result -> result.complete("over"));
        platform.handleAll(channel);
        platform.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        assertThat(server.core().running()).isZero();
        assertThat(server.core().ledger().audit()).isEmpty();
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        platform.read(channel, all, 0, all.length);
        platform.handleAll(channel);
    }

    private void call(int type, String method, long micros) {
        send(RawPeer.preface());
        ByteBuf payload = RawPeer.prelude("timed", method);
        Varint.write(payload, micros);
        send(RawPeer.frame(type | Wire.NAMED | Wire.TIME, ID, payload));
        HandPlatform.written(channel);
    }

    private void pass(long millis) {
        platform.pass(channel, millis, TimeUnit.MILLISECONDS);
        platform.handleAll(channel);
    }

    @ParameterizedTest
    @ValueSource(ints = {Wire.REQUEST, Wire.NOTICE})
    void aCallThatAsksForMoreHasTheLargestTime(int type) {
        call(type, "waits", FOR_EVER_MICROS);
        assertThat(service.left).containsExactly(MAX.toNanos());
        pass(MAX.toMillis() - 1);
        assertThat(service.told).isZero();
        pass(2);
        assertThat(service.told).isEqualTo(1);
        pass(1_001);
        assertThat(server.core().running()).isZero();
        byte[] last = HandPlatform.written(channel);
        assertThat(ByteBufUtil.hexDump(Unpooled.wrappedBuffer(last)).contains("07" + "00010000"))
                .as("an ERROR")
                .isEqualTo(type == Wire.REQUEST);
    }

    @Test
    void aCallThatAsksForLessHasThat() {
        call(Wire.REQUEST, "waits", TimeUnit.SECONDS.toMicros(2));
        assertThat(service.left).containsExactly(TimeUnit.SECONDS.toNanos(2));
    }

    @Test
    void aStreamHasTheTimeThatItAsksFor() {
        call(Wire.REQUEST, "brings", TimeUnit.DAYS.toMicros(365));
        assertThat(service.left).containsExactly(TimeUnit.DAYS.toNanos(365));
    }

    @Test
    void aClassicCallHasNoMoreThanTheLargestTimeEither() {
        channel.close();
        server = serving(Duration.ofSeconds(20));
        channel = platform.accept();
        send(ClassicRequests.of(1, "timed", "waits", List.of(), List.of()));
        assertThat(service.left).containsExactly(TimeUnit.SECONDS.toNanos(20));
    }

    @Test
    void theLargestTimeIsFromAMillisecondToAYear() {
        Server.Builder builder = Server.builder(RegistryServer.registry(service));
        builder.maxCallTime(Duration.ofMillis(1)).maxCallTime(Duration.ofDays(365));
        assertThatThrownBy(() -> builder.maxCallTime(Duration.ofNanos(999_999)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("maxCallTime");
        assertThatThrownBy(() -> builder.maxCallTime(Duration.ofDays(366)))
                .isInstanceOf(IllegalArgumentException.class);
    }
}
