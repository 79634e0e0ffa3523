package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** How long a connection may take to say what it speaks. */
class PrefaceTimeTest {
    @RPCXServer("preface")
    static final class Service {
        @Method
        void nothing() {}
    }

    private final HandPlatform platform = new HandPlatform();
    private final Server server = Server.builder(RegistryServer.registry(new Service()))
            .platform(platform)
            .build()
            .start();
    private final EmbeddedChannel channel = platform.accept();

    @AfterEach
    void end() {
        channel.close();
        platform.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        assertThat(server.ledger().audit()).isEmpty();
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
}
