package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests what a server charges for the buffers of requests. It charges all of their memory, whether it is used or not.
 */
class RequestBuffersTest {
    private static final int GENERATION = 1 << 16;
    private static final int PART_BYTES = 16_000;

    @RPCXServer("buffers")
    static final class Service {
        final List<CompletableFuture<String>> all = new ArrayList<>();

        @Method
        CompletableFuture<String> later(String text) {
            CompletableFuture<String> one = new CompletableFuture<>();
            all.add(one);
            return one;
        }
    }

    private final Service service = new Service();
    private final HandPlatform platform = new HandPlatform();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .platform(platform)
            .build()
            .start();
    private final EmbeddedChannel channel = platform.accept();

    @BeforeEach
    void greet() {
        send(RawPeer.preface());
    }

    @AfterEach
    void end() {
        service.all.forEach(one -> one.complete("over"));
        platform.handleAll(channel);
        channel.close();
        platform.handleAll(channel);
        platform.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        assertThat(server.core().ledger().audit()).isEmpty();
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        platform.read(channel, all, 0, all.length);
        platform.handleAll(channel);
    }

    private long held(Resource kind) {
        return server.core().ledger().held(kind);
    }

    private void request(int id, int bytes) {
        ByteBuf text = RawPeer.text("x".repeat(bytes));
        send(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.MORE, id, RawPeer.prelude("buffers", "later")));
        while (text.readableBytes() > PART_BYTES) {
            send(RawPeer.frame(Wire.PART | Wire.MORE, id, text.readSlice(PART_BYTES)));
        }
        send(RawPeer.frame(Wire.PART, id, text));
    }

    @Test
    void aRequestIsChargedForItsBufferAndNotForItsBytes() {
        send(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.MORE, GENERATION, RawPeer.prelude("buffers", "later")));
        send(RawPeer.frame(Wire.PART | Wire.MORE, GENERATION, Unpooled.buffer().writeZero(10_000)));
        assertThat(held(Resource.REQUEST_BYTES)).isEqualTo(16 << 10);
        send(RawPeer.frame(Wire.PART | Wire.MORE, GENERATION, Unpooled.buffer().writeZero(6_000)));
        assertThat(held(Resource.REQUEST_BYTES)).as("it fits").isEqualTo(16 << 10);
        send(RawPeer.frame(Wire.PART | Wire.MORE, GENERATION, Unpooled.buffer().writeZero(1_000)));
        assertThat(held(Resource.REQUEST_BYTES)).isEqualTo(32 << 10);
        send(RawPeer.frame(Wire.CANCEL, GENERATION, Unpooled.EMPTY_BUFFER));
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
    }

    /** Otherwise a peer could have each place's buffer grow once, and then hold them all with small calls. */
    @Test
    void aBufferThatWasKeptStaysChargedWhileTheNextCallUsesIt() {
        long before = held(Resource.KEPT_BYTES);
        request(GENERATION, 100_000);
        service.all.get(0).complete("done");
        platform.handleAll(channel);
        long kept = held(Resource.KEPT_BYTES) - before;
        assertThat(kept).isBetween(100_000L, 150_000L);
        request(2 * GENERATION, 10);
        assertThat(service.all).hasSize(2);
        assertThat(held(Resource.KEPT_BYTES) - before).isGreaterThanOrEqualTo(100_000);
        service.all.get(1).complete("done");
        platform.handleAll(channel);
        request(3 * GENERATION, 100_000);
        assertThat(held(Resource.REQUEST_BYTES))
                .as("the buffer is there, and charged")
                .isZero();
    }

    @Test
    void aReplyThatWaitsIsChargedForItsBufferAndNotForItsBytes() {
        request(GENERATION, 10);
        platform.reads(channel, false);
        service.all.get(0).complete("x".repeat(70_000));
        platform.handleAll(channel);
        long all = held(Resource.REPLY_BYTES) + held(Resource.REQUEST_BYTES);
        assertThat(all).isGreaterThanOrEqualTo((128 << 10) - 256);
        platform.reads(channel, true);
        assertThat(held(Resource.REPLY_BYTES)).isZero();
    }

    /** Otherwise a client that takes a byte now and then would keep the room of requests that are long over. */
    @ParameterizedTest
    @ValueSource(ints = {10_000, 100_000, 1_000_000})
    void whatARequestTookIsGivenBackBeforeItsReplyIsRead(int bytes) {
        long kept = held(Resource.KEPT_BYTES);
        request(GENERATION, bytes);
        assertThat(held(Resource.REQUEST_BYTES)).isGreaterThanOrEqualTo(bytes);
        platform.reads(channel, false);
        service.all.get(0).complete("done");
        platform.handleAll(channel);
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
        assertThat(held(Resource.REPLY_BYTES)).isBetween(1L, Charge.STEP_BYTES);
        assertThat(held(Resource.KEPT_BYTES)).isEqualTo(kept);
        assertThat(held(Resource.CALLS)).as("its reply waits").isEqualTo(1);
        platform.reads(channel, true);
        assertThat(held(Resource.REPLY_BYTES)).isZero();
    }

    @Test
    void aBufferThatWasKeptIsGivenUpForAReplyThatWaits() {
        long before = held(Resource.KEPT_BYTES);
        request(GENERATION, 100_000);
        service.all.get(0).complete("done");
        platform.handleAll(channel);
        request(2 * GENERATION, 10);
        assertThat(held(Resource.KEPT_BYTES) - before).isGreaterThanOrEqualTo(100_000);
        platform.reads(channel, false);
        service.all.get(1).complete("done");
        platform.handleAll(channel);
        assertThat(held(Resource.KEPT_BYTES)).isEqualTo(before);
        assertThat(held(Resource.REPLY_BYTES)).isBetween(1L, Charge.STEP_BYTES);
        platform.reads(channel, true);
    }

    @Test
    void aLargeReplyThatWaitsIsChargedForAllOfItsBuffer() {
        request(GENERATION, 1_000_000);
        platform.reads(channel, false);
        service.all.get(0).complete("x".repeat(600_000));
        platform.handleAll(channel);
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
        assertThat(held(Resource.REPLY_BYTES)).isEqualTo(1 << 20);
        platform.reads(channel, true);
        assertThat(held(Resource.REPLY_BYTES)).isZero();
    }

    @Test
    void theMetadataOfACallWhoseReplyWaitsCountWithThat() {
        ByteBuf payload = RawPeer.prelude("buffers", "later");
        MetadataFields.write(payload, Metadata.EMPTY.with("n", "v".repeat(5_000)));
        send(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.METADATA | Wire.MORE, GENERATION, payload));
        long metadata = held(Resource.REQUEST_BYTES);
        assertThat(metadata).isGreaterThanOrEqualTo(5_000);
        ByteBuf text = RawPeer.text("x".repeat(15_000));
        send(RawPeer.frame(Wire.PART, GENERATION, text));
        assertThat(held(Resource.REQUEST_BYTES)).isGreaterThanOrEqualTo(metadata + 15_000);
        platform.reads(channel, false);
        service.all.get(0).complete("done");
        platform.handleAll(channel);
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
        assertThat(held(Resource.REPLY_BYTES)).isBetween(metadata, metadata + Charge.STEP_BYTES);
        platform.reads(channel, true);
        assertThat(held(Resource.REPLY_BYTES)).isZero();
    }

    @Test
    void aBufferThatWasKeptIsNotChargedAgainWhereALargeReplyWaitsInIt() {
        long before = held(Resource.KEPT_BYTES);
        request(GENERATION, 100_000);
        service.all.get(0).complete("done");
        platform.handleAll(channel);
        long kept = held(Resource.KEPT_BYTES);
        assertThat(kept - before).isGreaterThanOrEqualTo(100_000);
        request(2 * GENERATION, 10);
        platform.reads(channel, false);
        service.all.get(1).complete("x".repeat(100_000));
        platform.handleAll(channel);
        assertThat(held(Resource.KEPT_BYTES)).isEqualTo(kept);
        assertThat(held(Resource.REPLY_BYTES)).as("the reply alone").isBetween(100_000L, 100_000 + Charge.STEP_BYTES);
        platform.reads(channel, true);
        assertThat(held(Resource.KEPT_BYTES)).isEqualTo(kept);
    }

    /** The request was too large for the buffer that the place had kept, so the place gave that buffer up. */
    @Test
    void aKeptBufferThatALargeRequestHasReplacedIsChargedNoLongerWhileTheReplyWaits() {
        long before = held(Resource.KEPT_BYTES);
        request(GENERATION, 100_000);
        service.all.get(0).complete("done");
        platform.handleAll(channel);
        assertThat(held(Resource.KEPT_BYTES) - before).isGreaterThanOrEqualTo(100_000);
        request(2 * GENERATION, 1_000_000);
        platform.reads(channel, false);
        service.all.get(1).complete("done");
        platform.handleAll(channel);
        assertThat(held(Resource.KEPT_BYTES)).isEqualTo(before);
        platform.reads(channel, true);
    }

    @Test
    void aReplyInPartsHoldsNothingOfItsRequest() {
        request(GENERATION, 1_000_000);
        List<Long> then = new ArrayList<>();
        channel.pipeline().addFirst(new ChannelOutboundHandlerAdapter() {
            @Override
            public void flush(ChannelHandlerContext ctx) {
                then.add(held(Resource.REQUEST_BYTES));
                ctx.flush();
            }
        });
        service.all.get(0).complete("x".repeat(100_000));
        platform.handleAll(channel);
        assertThat(then).isNotEmpty().containsOnly(0L);
    }

    @Test
    void aBufferThatIsTooLargeToBeKeptIsGivenUpWithItsCharge() {
        long before = held(Resource.KEPT_BYTES);
        request(GENERATION, 1_000_000);
        assertThat(held(Resource.REQUEST_BYTES)).isEqualTo(1 << 20);
        service.all.get(0).complete("done");
        platform.handleAll(channel);
        assertThat(held(Resource.REQUEST_BYTES)).isZero();
        assertThat(held(Resource.KEPT_BYTES) - before).isLessThan(40_000);
    }

    /** Returns a text that takes so many bytes in a reply. */
    private static String reply(int bytes) {
        int characters = bytes - (RawPeer.text("x".repeat(bytes)).readableBytes() - bytes);
        assertThat(RawPeer.text("x".repeat(characters)).readableBytes()).isEqualTo(bytes);
        return "x".repeat(characters);
    }

    @Test
    void theLargestBufferThatCountsAsSmallIsNotReplacedWhileAReplyWaits() {
        long before = held(Resource.KEPT_BYTES);
        request(GENERATION, 3_000);
        platform.reads(channel, false);
        service.all.get(0).complete("done");
        platform.handleAll(channel);
        assertThat(held(Resource.REPLY_BYTES)).isPositive();
        platform.reads(channel, true);
        assertThat(held(Resource.KEPT_BYTES) - before).isEqualTo(Outbound.MAX_SMALL_BYTES);
    }

    /** The server does not replace a buffer of which less than half is empty. */
    @Test
    void aBufferThatIsHalfEmptyIsReplacedWhileAReplyWaits() {
        for (int i = 0; i < 2; i++) {
            request((1 + i) * GENERATION, 6_000);
            platform.reads(channel, false);
            service.all.get(i).complete(reply(4_096 + i));
            platform.handleAll(channel);
            assertThat(held(Resource.REPLY_BYTES)).isEqualTo(i == 0 ? 4_096 : 8_192);
            platform.reads(channel, true);
            assertThat(held(Resource.REPLY_BYTES)).isZero();
        }
    }
}
