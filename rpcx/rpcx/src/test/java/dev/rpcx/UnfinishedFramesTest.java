package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests frames whose end does not arrive. The bytes of such a frame are charged before they are kept, and are not kept
 * forever.
 */
@Timeout(60)
class UnfinishedFramesTest {
    private static final int LENGTH_BYTES = 3;

    @RPCXServer("unfinished")
    static final class Service {
        @Method
        void nothing() {}
    }

    private final HandPlatform platform = new HandPlatform();
    private final Server server = Server.builder(RegistryServer.registry(new Service()))
            .platform(platform)
            .maxConnections(1_000_000)
            .build()
            .start();
    private final EmbeddedChannel channel = platform.accept();
    private final ByteBuf ping = RawPeer.frame(Wire.PING, 7, Unpooled.buffer().writeZero(Wire.MAX_PAYLOAD_BYTES));

    @BeforeEach
    void greet() {
        send(RawPeer.preface());
        HandPlatform.written(channel);
    }

    @AfterEach
    void end() {
        channel.close();
        platform.pass(channel, 2, TimeUnit.HOURS);
        channel.releaseOutbound();
        assertThat(server.core().ledger().held(Resource.FRAME_BYTES)).isZero();
        assertThat(server.core().ledger().held(Resource.KEPT_BYTES)).isZero();
    }

    private void send(ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        platform.read(channel, all, 0, all.length);
    }

    private long held() {
        return server.core().ledger().held(Resource.FRAME_BYTES);
    }

    /** Takes nearly all of this resource, so that not even the smallest amount is left. */
    private List<Charge> takeAll(Resource kind) {
        List<Charge> taken = new ArrayList<>();
        for (long part = server.core().ledger().max(kind); part > 0; ) {
            Charge charge =
                    Objects.requireNonNull(server.core().ledger().open(null)).charge(kind);
            if (charge.add(part)) {
                taken.add(charge);
            } else {
                part /= 2;
            }
        }
        return taken;
    }

    /** Returns the frame that the server has sent, and checks that there is no other. */
    private RawPeer.Frame answer() {
        ByteBuf in = Unpooled.wrappedBuffer(HandPlatform.written(channel));
        ByteBuf frame = in.readSlice((int) Varint.read(in));
        RawPeer.Frame answer =
                new RawPeer.Frame(frame.readUnsignedByte(), frame.readInt(), ByteBufUtil.getBytes(frame));
        assertThat(in.isReadable()).isFalse();
        return answer;
    }

    private RPCXException end(RawPeer.Frame last) {
        assertThat(last.type()).isEqualTo(Wire.ERROR);
        assertThat(last.id()).isZero();
        assertThat(channel.isActive()).isFalse();
        return WireError.read(Unpooled.wrappedBuffer(last.payload()));
    }

    @Test
    void theBeginOfALargeFrameIsChargedUntilItsEndHasCome() {
        send(ping.readSlice(Outbound.MAX_SMALL_BYTES));
        assertThat(held()).isZero();
        send(ping.readSlice(1));
        assertThat(held()).isEqualTo(Wire.MAX_FRAME_BYTES + Wire.MAX_HEADER_BYTES);
        send(ping.readSlice(5_000));
        assertThat(held()).isEqualTo(Wire.MAX_FRAME_BYTES + Wire.MAX_HEADER_BYTES);
        send(ping);
        assertThat(answer().type()).isEqualTo(Wire.PONG);
        assertThat(held()).isZero();
    }

    @Test
    void whereThereIsNoRoomForTheBeginOfAFrameItsConnectionEndsAndIsToldWhy() {
        List<Charge> taken = takeAll(Resource.FRAME_BYTES);
        long before = held();
        send(ping.readSlice(12_000));
        RPCXException why = end(answer());
        assertThat(why.code()).isEqualTo(RPCXException.Code.OVERLOADED);
        assertThat(why.executed()).isEqualTo(RPCXException.Executed.MAYBE);
        assertThat(held()).isEqualTo(before);
        taken.forEach(Charge::release);
    }

    @Test
    void whereThereIsNoRoomForKeptBuffersAFrameInPiecesArrivesAllTheSameAndItsBufferIsGivenUp() {
        List<Charge> taken = takeAll(Resource.KEPT_BYTES);
        long before = server.core().ledger().held(Resource.KEPT_BYTES);
        for (int i = 0; i < 3; i++) {
            send(ping.slice(0, 12_000));
            send(ping.slice(12_000, ping.readableBytes() - 12_000));
            assertThat(answer().type()).isEqualTo(Wire.PONG);
        }
        assertThat(server.core().ledger().held(Resource.KEPT_BYTES)).isEqualTo(before);
        assertThat(held()).isZero();
        taken.forEach(Charge::release);
    }

    @Test
    void aFrameThatComesByteForByteEndsItsConnection() {
        send(ping.readSlice(Outbound.MAX_SMALL_BYTES + LENGTH_BYTES));
        for (int second = 0; second < 30; second++) {
            platform.pass(channel, 1, TimeUnit.SECONDS);
            send(ping.readSlice(1));
            assertThat(channel.isActive()).isTrue();
        }
        platform.pass(channel, 2, TimeUnit.SECONDS);
        assertThat(end(answer()).code()).isEqualTo(RPCXException.Code.PROTOCOL);
    }

    /** Each byte is a sign of life, so nothing else would end the connection. */
    @Test
    void aSmallFrameThatComesByteForByteEndsItsConnectionAfterTheKeepAliveTime() {
        ByteBuf small = RawPeer.frame(Wire.PING, 7, Unpooled.buffer().writeZero(1_000));
        for (int second = 0; second < 60; second += 10) {
            send(small.readSlice(1));
            platform.pass(channel, 10, TimeUnit.SECONDS);
            assertThat(channel.isActive()).isTrue();
        }
        for (int second = 60; second < 90 && channel.isActive(); second += 10) {
            send(small.readSlice(1));
            platform.pass(channel, 10, TimeUnit.SECONDS);
        }
        assertThat(end(answer()).code()).isEqualTo(RPCXException.Code.PROTOCOL);
    }

    @Test
    void smallFramesThatComeInTimeHaveTheirTimeEach() {
        ByteBuf small = RawPeer.frame(Wire.PING, 7, Unpooled.buffer().writeZero(1_000));
        for (int i = 0; i < 20; i++) {
            send(small.slice(0, 500));
            platform.pass(channel, 15, TimeUnit.SECONDS);
            send(small.slice(500, small.readableBytes() - 500));
            assertThat(answer().type()).isEqualTo(Wire.PONG);
        }
        assertThat(channel.isActive()).isTrue();
    }

    @Test
    void timeInWhichTheServerDoesNotReadCountsAgainstNoFrame() {
        send(ping.readSlice(5_000));
        for (int i = 0; i < 10; i++) {
            platform.pass(channel, 2, TimeUnit.SECONDS);
            platform.reads(channel, false);
            platform.pass(channel, 100, TimeUnit.SECONDS);
            platform.reads(channel, true);
            // the server reads one byte between two pauses
            send(ping.readSlice(1));
        }
        assertThat(channel.isActive()).isTrue();
        platform.pass(channel, 12, TimeUnit.SECONDS);
        assertThat(end(answer()).code()).isEqualTo(RPCXException.Code.PROTOCOL);
    }

    private EmbeddedChannel begin() {
        EmbeddedChannel one = platform.accept();
        byte[] begin = ByteBufUtil.getBytes(RawPeer.preface().writeBytes(ping.slice(0, 5_000)));
        platform.read(one, begin, 0, begin.length);
        return one;
    }

    @Test
    void whereThePoolIsFullOfBegunFramesThoseEndThatHaveStoodForLongestAndNotTheNext() {
        List<EmbeddedChannel> attackers = new ArrayList<>();
        long room = server.core().ledger().max(Resource.FRAME_BYTES) / 4;
        int fit = (int) (room / (Wire.MAX_FRAME_BYTES + Wire.MAX_HEADER_BYTES));
        List<Charge> others = takeAllBut(room);
        for (int i = 0; i < fit + 100; i++) {
            attackers.add(begin());
            if (i % 100 == 0) {
                platform.pass(channel, 1, TimeUnit.MILLISECONDS);
                attackers.forEach(platform::settle);
            }
        }
        for (int i = 0; i < 10; i++) {
            send(ping.slice(0, 12_000));
            platform.pass(channel, 5, TimeUnit.MILLISECONDS);
            attackers.add(begin());
            send(ping.slice(12_000, ping.readableBytes() - 12_000));
            assertThat(answer().type()).isEqualTo(Wire.PONG);
        }
        attackers.forEach(platform::settle);
        assertThat(attackers.get(0).isActive()).isFalse();
        assertThat(attackers.get(attackers.size() - 1).isActive()).isTrue();
        assertThat(held()).isLessThanOrEqualTo(server.core().ledger().max(Resource.FRAME_BYTES));
        RPCXException why = WireError.read(lastFrame(attackers.get(0)));
        assertThat(why.code()).isEqualTo(RPCXException.Code.OVERLOADED);
        for (EmbeddedChannel one : attackers) {
            one.close();
            platform.settle(one);
            one.releaseOutbound();
        }
        others.forEach(Charge::release);
    }

    /** Charges others for the whole pool of begun frames except for this much. */
    private List<Charge> takeAllBut(long room) {
        List<Charge> taken = new ArrayList<>();
        long free = server.core().ledger().max(Resource.FRAME_BYTES);
        while (free > room) {
            Charge charge =
                    Objects.requireNonNull(server.core().ledger().open(null)).charge(Resource.FRAME_BYTES);
            long part = Math.min(free / 2, free - room);
            assertThat(charge.add(part)).isTrue();
            taken.add(charge);
            free -= part;
        }
        return taken;
    }

    private static ByteBuf lastFrame(EmbeddedChannel of) {
        ByteBuf in = Unpooled.wrappedBuffer(HandPlatform.written(of)).skipBytes(Wire.PREFACE_BYTES);
        ByteBuf frame = in;
        while (in.isReadable()) {
            frame = in.readSlice((int) Varint.read(in));
        }
        return frame.skipBytes(Wire.HEAD_BYTES);
    }

    @Test
    void framesThatComeInTimeHaveTheirTimeEach() {
        for (int i = 0; i < 10; i++) {
            send(ping.slice(0, 12_000));
            platform.pass(channel, 19, TimeUnit.SECONDS);
            send(ping.slice(12_000, ping.readableBytes() - 12_000));
            assertThat(answer().type()).isEqualTo(Wire.PONG);
        }
        assertThat(channel.isActive()).isTrue();
    }
}
