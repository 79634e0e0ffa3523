package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.ClassicServerConnection;
import dev.rpcx.internal.server.ServerConnection;
import dev.rpcx.internal.server.Sniffer;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests how long a connection may take to send its preface. */
class PrefaceTimeTest {
    @RPCXServer("preface")
    static final class Service {
        @Method
        void nothing() {}
    }

    private final HandPlatform platform = new HandPlatform();
    private final Server server = Server.builder(RegistryServer.registry(new Service()))
            .platform(platform)
            .classic(true)
            .build()
            .start();
    private final EmbeddedChannel channel = platform.accept();

    @AfterEach
    void end() {
        channel.close();
        platform.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        assertThat(server.core().ledger().audit()).isEmpty();
    }

    private void say(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        platform.read(channel, all, 0, all.length);
    }

    @Test
    void aConnectionThatSaysNothingEndsAfterTenSeconds() {
        platform.pass(channel, 9_999, TimeUnit.MILLISECONDS);
        assertThat(channel.isActive()).isTrue();
        platform.pass(channel, 1, TimeUnit.MILLISECONDS);
        assertThat(channel.isActive()).isFalse();
    }

    @Test
    void theFirstByteGivesNoNewTimeForTheRest() {
        platform.pass(channel, 9, TimeUnit.SECONDS);
        say(RawPeer.preface().readSlice(1));
        platform.pass(channel, 999, TimeUnit.MILLISECONDS);
        assertThat(channel.isActive()).isTrue();
        platform.pass(channel, 1, TimeUnit.MILLISECONDS);
        assertThat(channel.isActive()).isFalse();
    }

    @Test
    void aPrefaceThatIsThereInTimeIsAnswered() {
        platform.pass(channel, 9, TimeUnit.SECONDS);
        ByteBuf preface = RawPeer.preface();
        say(preface.readSlice(1));
        platform.pass(channel, 999, TimeUnit.MILLISECONDS);
        say(preface);
        platform.pass(channel, 1, TimeUnit.SECONDS);
        assertThat(channel.isActive()).isTrue();
        assertThat(HandPlatform.written(channel)).isNotEmpty();
    }

    @Test
    void aConnectionThatEndsBeforeItsPrefaceIsWholeIsHeldByNoTimer() {
        for (int said = 0; said < Wire.PREFACE_BYTES; said++) {
            EmbeddedChannel other = platform.accept();
            ByteBuf preface = RawPeer.preface();
            if (said > 0) {
                byte[] some = ByteBufUtil.getBytes(preface, 0, said);
                platform.read(other, some, 0, said);
            }
            other.close();
            assertThat(other.runScheduledPendingTasks())
                    .as("behind %d bytes", said)
                    .isEqualTo(-1);
            other.releaseOutbound();
        }
    }

    @Test
    void aServerThatAsksItsPeersSoonerWaitsNoLongerForThePreface() {
        HandPlatform other = new HandPlatform();
        Server sooner = Server.builder(RegistryServer.registry(new Service()))
                .platform(other)
                .keepAlive(Duration.ofSeconds(3))
                .build()
                .start();
        assertThat(Sniffer.silentNanos(sooner.core())).isEqualTo(TimeUnit.SECONDS.toNanos(3));
        assertThat(Sniffer.silentNanos(server.core())).isEqualTo(TimeUnit.SECONDS.toNanos(10));
        EmbeddedChannel silent = other.accept();
        other.pass(silent, 2_999, TimeUnit.MILLISECONDS);
        assertThat(silent.isActive()).isTrue();
        other.pass(silent, 1, TimeUnit.MILLISECONDS);
        assertThat(silent.isActive()).isFalse();
        silent.releaseOutbound();
        assertThat(sooner.core().ledger().audit()).isEmpty();
    }

    @Test
    void theFirstByteTellsTheWireAndIsTheFirstOfIt() {
        assertThat(server.core().ledger().held(Resource.TIMERS)).isEqualTo(1);
        ByteBuf nothing = Unpooled.buffer();
        channel.pipeline().fireChannelRead(nothing);
        assertThat(nothing.refCnt()).isZero();
        assertThat(channel.pipeline().get(Sniffer.class)).isNotNull();
        say(RawPeer.preface());
        assertThat(channel.pipeline().get(Sniffer.class)).isNull();
        assertThat(channel.pipeline().get(ServerConnection.class)).isNotNull();
        assertThat(HandPlatform.written(channel)).isNotEmpty();
        EmbeddedChannel classic = platform.accept();
        classic.pipeline().fireChannelRead(Unpooled.buffer().writeByte(0));
        assertThat(classic.pipeline().get(ClassicServerConnection.class)).isNotNull();
        classic.close();
        classic.releaseOutbound();
    }

    @Test
    void whatFailsBeforeTheFirstByteClosesTheConnection() {
        channel.pipeline().fireExceptionCaught(new IOException("reset, in this test"));
        assertThat(channel.isActive()).isFalse();
        assertThat(server.core().ledger().held(Resource.TIMERS)).isZero();
    }
}
