package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What calls keep whose replies wait to be read, and whose handlers were begun by an interceptor's event loop. */
@Timeout(60)
class WaitingRepliesTest {
    private static final int GENERATION = 1 << 16;
    private static final int LARGE = 100_000;
    private static final int PART_BYTES = 16_000;

    @RPCXServer("waiting")
    static final class Service {
        @Method
        String done(String text) {
            return "done";
        }
    }

    /** As a token is looked at elsewhere: the call goes on when its answer has come, on an event loop. */
    private final CompletableFuture<String> answer = new CompletableFuture<>();

    private final HandPlatform platform = new HandPlatform();
    private final Server server = Server.builder(RegistryServer.registry(new Service()))
            .interceptor((call, next) -> answer.thenCompose(any -> {
                try {
                    return (CompletableFuture<?>) next.proceed(call);
                } catch (Throwable t) {
                    return CompletableFuture.failedFuture(t);
                }
            }))
            .platform(platform)
            .build()
            .start();
    private final EmbeddedChannel channel = platform.accept();

    @BeforeEach
    void greet() {
        send(RawPeer.preface());
    }

    @AfterEach
    void nothingIsLeft() {
        channel.close();
        platform.handleAll(channel);
        platform.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        assertThat(server.running()).isZero();
        assertThat(server.ledger().audit()).isEmpty();
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        platform.read(channel, all, 0, all.length);
    }

    private long held(Resource kind) {
        return server.ledger().held(kind);
    }

    private void request() {
        ByteBuf text = RawPeer.text("x".repeat(LARGE));
        send(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.MORE, GENERATION, RawPeer.prelude("waiting", "done")));
        while (text.readableBytes() > PART_BYTES) {
            send(RawPeer.frame(Wire.PART | Wire.MORE, GENERATION, text.readSlice(PART_BYTES)));
        }
        send(RawPeer.frame(Wire.PART, GENERATION, text));
        platform.handleAll(channel);
    }

    private void answerOnAnEventLoop() throws InterruptedException {
        Thread loop = new LoopThread(() -> answer.complete("good"), "of a client");
        loop.start();
        loop.join();
    }

    /** The thread that the interceptor has begun is the one that ends the call, and runs still as its reply is queued. */
    @Test
    void whatItsRequestWasReadIntoIsGivenBackWithItsThread() throws InterruptedException {
        request();
        assertThat(held(Resource.OBJECT_BYTES)).isPositive();
        answerOnAnEventLoop();
        platform.reads(channel, false);
        platform.handleAll(channel);
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
        assertThat(held(Resource.OBJECT_BYTES)).isZero();
        assertThat(held(Resource.REPLY_BYTES)).as("it waits").isPositive();
        assertThat(server.running()).isZero();
        platform.reads(channel, true);
        assertThat(held(Resource.REPLY_BYTES)).isZero();
        assertThat(held(Resource.CALLS)).as("its place is kept").isEqualTo(1);
    }
}
