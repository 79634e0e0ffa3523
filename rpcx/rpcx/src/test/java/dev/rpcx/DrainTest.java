package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests a server that stops while a connection says which wire it uses. */
class DrainTest {
    private static final int FIRST = 1 << 16;

    @RPCXServer("drain")
    static final class Service {
        @Method
        String echo(String text) {
            return text;
        }
    }

    private final HandPlatform hand = new HandPlatform();
    private final Server server = Server.builder(RegistryServer.registry(new Service()))
            .platform(hand)
            .build()
            .start();
    private final EmbeddedChannel channel = hand.accept();

    @AfterEach
    void nothingIsLeft() {
        channel.close();
        hand.settle(channel);
        hand.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        assertThat(server.core().running()).isZero();
        assertThat(server.core().ledger().audit()).isEmpty();
        assertThat(hand.heldBytes()).isZero();
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        hand.read(channel, all, 0, all.length);
    }

    private List<Integer> written() {
        ByteBuf in = Unpooled.wrappedBuffer(HandPlatform.written(channel)).skipBytes(Wire.PREFACE_BYTES);
        List<Integer> types = new ArrayList<>();
        while (in.isReadable()) {
            ByteBuf frame = in.readSlice(Varint.readLength(in, Wire.MAX_FRAME_BYTES, "a frame"));
            types.add(frame.readUnsignedByte() & Wire.TYPE_MASK);
        }
        return types;
    }

    @Test
    void aTimeThatNoTimerTakesEndsWithTheLastConnectionAndOneThatIsOverAtOnce() {
        for (Duration time : List.of(ChronoUnit.FOREVER.getDuration(), Duration.ofDays(400), Duration.ofSeconds(-1))) {
            Server real = new Server(0, RegistryServer.registry(new Service())).start();
            assertTimeoutPreemptively(Duration.ofSeconds(30), () -> real.stop(time));
        }
        assertThatThrownBy(() -> server.stop(null)).isInstanceOf(NullPointerException.class);
    }

    /** The event loop of the connection is a moment behind, so it has greeted the client when it learns of the stop. */
    @Test
    void aConnectionThatIsGreetedBeforeItsEventLoopHearsOfTheStopFinishesItsCalls() {
        server.core().drain(Duration.ofMinutes(1));
        ByteBuf together = Unpooled.buffer();
        together.writeBytes(RawPeer.preface());
        together.writeBytes(RawPeer.frame(
                Wire.REQUEST | Wire.NAMED,
                FIRST,
                RawPeer.prelude("drain", "echo").writeBytes(RawPeer.text("a"))));
        send(together);
        hand.handleAll(channel);
        assertThat(written()).contains(Wire.GOAWAY, Wire.REPLY);
        assertThat(channel.isActive()).isTrue();
    }

    @Test
    void aConnectionThatHasSaidNothingIsClosedByAStop() {
        server.core().drain(Duration.ofMinutes(1));
        hand.settle(channel);
        assertThat(channel.isActive()).isFalse();
    }
}
