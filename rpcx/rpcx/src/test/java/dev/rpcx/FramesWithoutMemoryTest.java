package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.embedded.EmbeddedChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests a server that has no memory for a reply at a moment when it reads nothing from the connection. */
class FramesWithoutMemoryTest {
    @RPCXServer("later")
    static final class Service {
        final List<CompletableFuture<String>> waiting = new ArrayList<>();

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletionStage<String> later(String text) {
            CompletableFuture<String> result = new CompletableFuture<>();
            waiting.add(result);
            return result;
        }
    }

    private final HandPlatform hand = new HandPlatform();
    private final FailingAllocator memory = new FailingAllocator();
    private final Service service = new Service();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .platform(hand)
            .keepAlive(Duration.ofHours(1))
            .build()
            .start();
    private final EmbeddedChannel channel = hand.accept();

    @AfterEach
    void nothingIsLeft() {
        channel.close();
        hand.settle(channel);
        channel.releaseOutbound();
        hand.pass(channel, 2, TimeUnit.HOURS);
        assertThat(server.core().running()).isZero();
        assertThat(server.core().ledger().audit()).isEmpty();
        assertThat(hand.heldBytes()).isZero();
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        hand.read(channel, all, 0, all.length);
    }

    /**
     * Completes a call on the event loop of its connection, as happens if a handler of another connection lets it go
     * on.
     */
    private void reply(int call, String text) {
        service.waiting.get(call).complete(text);
        hand.settle(channel);
    }

    @ParameterizedTest
    @ValueSource(ints = {5_000, 100_000})
    void noCallersReplyIsMadeOfThoseOfOthers(int bytes) {
        send(RawPeer.preface());
        for (int call = 0; call < 3; call++) {
            send(RawPeer.request(1 << 16 | call, "later", "later", "a"));
        }
        HandPlatform.written(channel);
        channel.config().setAllocator(memory);
        memory.failAtNext(1);
        reply(0, "x".repeat(bytes));
        assertThat(memory.hasFailed()).isTrue();
        reply(1, "of another");
        reply(2, "y".repeat(6_000));
        assertThat(HandPlatform.written(channel).length).isZero();
        assertThat(channel.isOpen()).isFalse();
    }
}
