package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.ledger.Ledger;
import dev.rpcx.internal.server.ServedConnection;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.ChannelHandler;
import io.netty.channel.embedded.EmbeddedChannel;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Tests futures that go on after the connections of their calls have ended. They keep what is charged for them, and
 * nothing else.
 */
@Timeout(60)
class OutlastingFuturesTest {
    private static final int CONNECTIONS = 3;
    private static final int BYTES = 10_000;

    private enum Way {
        /** The handler returns a future of its own. */
        RETURNED,
        /** The handler begins a call, and returns a result without waiting for the future of this call. */
        BEGUN,
        /** The handler returns a future that depends on the future of a call. */
        FOLLOWED
    }

    @RPCXServer("outlasting")
    static final class Service {
        final List<CompletableFuture<String>> open = new ArrayList<>();

        @Method
        CompletableFuture<String> returned(String text) {
            CompletableFuture<String> result = new CompletableFuture<>();
            open.add(result);
            return result;
        }

        @Method
        String begun(String text) {
            open.add(new CallFuture<>());
            return "soon";
        }

        @Method
        CompletableFuture<String> followed(String text) {
            CallFuture<String> down = new CallFuture<>();
            open.add(down);
            return down.thenApply(String::strip);
        }
    }

    private final HandPlatform platform = new HandPlatform();
    private final Service service = new Service();

    @AfterEach
    void end() {
        service.open.forEach(future -> future.complete("late"));
        assertThat(Ledger.auditAll()).isEmpty();
    }

    private void send(EmbeddedChannel channel, ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        platform.read(channel, all, 0, all.length);
        platform.handleAll(channel);
    }

    /** Opens a connection, makes one call, and closes the connection. */
    private WeakReference<ChannelHandler> served(boolean isClassic, Way way) {
        String method = way.name().toLowerCase(Locale.ROOT);
        ByteBuf text = RawPeer.text("x".repeat(BYTES));
        EmbeddedChannel channel = platform.accept();
        if (isClassic) {
            send(
                    channel,
                    ClassicRequests.of(
                            1, "outlasting", method, List.of("String"), List.of(ByteBufUtil.getBytes(text))));
        } else {
            send(channel, RawPeer.preface());
            send(
                    channel,
                    RawPeer.frame(
                            Wire.REQUEST | Wire.NAMED,
                            Wire.SLOT_MASK + 1,
                            RawPeer.prelude("outlasting", method).writeBytes(text)));
        }
        ChannelHandler connection = channel.pipeline().first();
        assertThat(connection).isInstanceOf(ServedConnection.class);
        // the time of the call passes, and then the time of its future
        for (int i = 0; i < 2; i++) {
            platform.pass(channel, 1_100, TimeUnit.MILLISECONDS);
            platform.handleAll(channel);
        }
        channel.close();
        platform.handleAll(channel);
        HandPlatform.written(channel);
        return new WeakReference<>(connection);
    }

    @ParameterizedTest
    @CsvSource({
        "false, false, RETURNED",
        "false, true, RETURNED",
        "true, false, RETURNED",
        "true, true, RETURNED",
        "false, false, BEGUN",
        "false, true, BEGUN",
        "true, false, BEGUN",
        "true, true, BEGUN",
        "false, false, FOLLOWED",
        "false, true, FOLLOWED",
        "true, false, FOLLOWED",
        "true, true, FOLLOWED"
    })
    void noneKeepsItsConnection(boolean isClassic, boolean isIntercepted, Way way) {
        Server.Builder builder = Server.builder(RegistryServer.registry(service))
                .platform(platform)
                .classic(true)
                .maxCallTime(Duration.ofSeconds(1));
        if (isIntercepted) {
            builder.interceptor((call, next) -> next.proceed(call));
        }
        Server server = builder.build().start();
        List<WeakReference<ChannelHandler>> connections = new ArrayList<>();
        for (int i = 0; i < CONNECTIONS; i++) {
            connections.add(served(isClassic, way));
        }
        assertThat(service.open).hasSize(CONNECTIONS).noneMatch(CompletableFuture::isDone);
        assertThat(server.core().connections()).isZero();
        assertThat(server.core().ledger().lingeringCharges()).isEqualTo(way == Way.BEGUN ? 0 : CONNECTIONS);
        Heap.assumeCollected();
        await().until(() -> {
            System.gc();
            return connections.stream().allMatch(each -> each.refersTo(null));
        });
    }
}
