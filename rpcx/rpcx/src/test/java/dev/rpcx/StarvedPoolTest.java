package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.server.AdmissionLimit;
import dev.rpcx.internal.wire.MethodDictionary;
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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests calls that wait for a thread and never get one, under a simulated clock. The test decides when a thread is
 * free.
 */
@Timeout(60)
class StarvedPoolTest {
    private static final int GENERATION = 1 << 16;
    private static final int GIVEN_MILLIS = 200;
    private static final int MANY = 40;

    @RPCXServer("starved")
    static final class Service {
        int begun;

        @Method
        @RunOn(RunOn.Place.POOL)
        String waits() {
            begun++;
            return "done";
        }
    }

    /** Acts as a client through a channel without a socket. */
    private final class Peer {
        final EmbeddedChannel channel = platform.accept();
        private int sent;

        Peer() {
            send(RawPeer.preface());
            HandPlatform.written(channel);
            peers.add(this);
        }

        private void send(ByteBuf bytes) {
            byte[] all = ByteBufUtil.getBytes(bytes);
            platform.read(channel, all, 0, all.length);
        }

        void call(int type, long millis) {
            ByteBuf payload = RawPeer.prelude("starved", "waits");
            Varint.write(payload, millis * 1000);
            send(RawPeer.frame(type | Wire.NAMED | Wire.TIME, id(sent++), payload));
        }

        void call(int count) {
            for (int i = 0; i < count; i++) {
                call(Wire.REQUEST, GIVEN_MILLIS);
            }
        }

        void cancelAll() {
            for (int i = 0; i < sent; i++) {
                send(RawPeer.frame(Wire.CANCEL, id(i), Unpooled.EMPTY_BUFFER));
            }
        }

        private int id(int call) {
            return GENERATION * (1 + call / Wire.MAX_SLOTS) | call % Wire.MAX_SLOTS;
        }

        /** Returns the errors that have come since the last look. */
        List<RPCXException> errors() {
            List<RPCXException> errors = new ArrayList<>();
            ByteBuf in = Unpooled.wrappedBuffer(HandPlatform.written(channel));
            while (in.isReadable()) {
                ByteBuf frame = in.readSlice((int) Varint.read(in));
                int head = frame.readUnsignedByte();
                frame.readInt();
                if (head == Wire.ERROR) {
                    errors.add(WireError.read(frame));
                }
            }
            return errors;
        }

        void pass(long millis) {
            platform.pass(channel, millis, TimeUnit.MILLISECONDS);
        }
    }

    private final HandPlatform platform = new HandPlatform();
    private final Service service = new Service();
    private final List<Peer> peers = new ArrayList<>();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .platform(platform)
            .build()
            .start();
    private final Peer peer = new Peer();
    private final AdmissionLimit limit = Objects.requireNonNull(
            Objects.requireNonNull(server.core().method(MethodDictionary.key("starved", "waits")))
                    .admission());
    private final int most = limit.limit();

    @AfterEach
    void end() {
        for (Peer each : peers) {
            each.channel.close();
            platform.handleAll(each.channel);
            platform.pass(each.channel, 2, TimeUnit.HOURS);
            each.channel.releaseOutbound();
        }
        assertThat(server.core().running()).isZero();
        assertThat(server.core().ledger().audit()).isEmpty();
    }

    /**
     * Makes calls on so many connections that no thread is free for any of them. Fewer would not do, since a call that
     * waits beyond its connection's share says nothing of the method.
     */
    private void starve() {
        List<Peer> all = new ArrayList<>(List.of(peer));
        for (int i = 0; i < 8; i++) {
            all.add(new Peer());
        }
        for (int i = 0; i < 20; i++) {
            all.forEach(each -> each.call(MANY));
            all.forEach(each -> each.pass(GIVEN_MILLIS + 1));
        }
        for (Peer each : all.subList(1, all.size())) {
            platform.handleAll(each.channel);
            each.errors();
        }
    }

    @Test
    void aCallWhoseTimeIsOverBeforeItBeginsHoldsNoPlaceOfARunningHandler() {
        peer.call(MANY);
        assertThat(server.core().running()).isEqualTo(MANY);
        peer.pass(GIVEN_MILLIS + 1);
        assertThat(server.core().running()).isZero();
        assertThat(peer.errors()).hasSize(MANY).allSatisfy(error -> {
            assertThat(error.code()).isEqualTo(RPCXException.Code.DEADLINE_EXCEEDED);
            assertThat(error.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
        });
        // the thread that comes to these calls later counts nothing twice
        platform.handleAll(peer.channel);
        assertThat(service.begun).isZero();
        assertThat(server.core().running()).isZero();
    }

    @Test
    void aNoticeWhoseTimeIsOverBeforeItBeginsHoldsNoPlaceOfARunningHandler() {
        peer.call(Wire.NOTICE, GIVEN_MILLIS);
        assertThat(server.core().running()).isEqualTo(1);
        peer.pass(GIVEN_MILLIS + 1);
        assertThat(server.core().running()).isZero();
        platform.handleAll(peer.channel);
        assertThat(service.begun).isZero();
        assertThat(server.core().running()).isZero();
    }

    @Test
    void aCallWhoseCallerIsGoneBeforeItBeginsHoldsNoPlaceOfARunningHandler() {
        peer.call(MANY);
        peer.channel.close();
        assertThat(server.core().running()).isZero();
    }

    @Test
    void whereNoCallBeginsTheLimitSinksAndWhereTheyBeginAgainItRises() {
        starve();
        assertThat(limit.limit()).isEqualTo(AdmissionLimit.MIN_LIMIT);
        platform.handleAll(peer.channel);
        HandPlatform.written(peer.channel);
        assertThat(service.begun).isZero();
        for (int i = 0; i < 300 && limit.limit() < most; i++) {
            peer.call(MANY);
            peer.pass(10);
            platform.handleAll(peer.channel);
            HandPlatform.written(peer.channel);
            peer.pass(90);
        }
        assertThat(limit.limit()).isEqualTo(most);
    }

    @Test
    void connectionsShareALimitThatHasSunk() {
        starve();
        platform.handleAll(peer.channel);
        assertThat(limit.limit()).isEqualTo(AdmissionLimit.MIN_LIMIT);
        peer.errors();
        // the peer has half of the limit and one more, since others were there a moment ago
        peer.call(AdmissionLimit.MIN_LIMIT);
        assertThat(peer.errors()).hasSize(1);
        Peer other = new Peer();
        // the other peer has the share of two connections nevertheless
        other.call(AdmissionLimit.MIN_LIMIT / 2);
        assertThat(other.errors()).isEmpty();
        other.call(1);
        assertThat(other.errors()).hasSize(1);
        platform.handleAll(other.channel);
        peer.call(1);
        assertThat(peer.errors()).isEmpty();
        platform.handleAll(peer.channel);
    }

    @Test
    void aCallWithHardlyAnyTimeThatDoesNotBeginSaysNothing() {
        for (int i = 0; i < 20; i++) {
            for (int j = 0; j < MANY; j++) {
                peer.call(Wire.REQUEST, 4);
            }
            peer.pass(GIVEN_MILLIS);
        }
        assertThat(limit.limit()).isEqualTo(most);
    }

    @Test
    void aCallThatIsCancelledInGoodTimeBeforeItBeginsSaysNothing() {
        for (int i = 0; i < 20; i++) {
            peer.call(MANY);
            peer.pass(GIVEN_MILLIS / 2);
            peer.cancelAll();
            assertThat(server.core().running()).isZero();
        }
        assertThat(limit.limit()).isEqualTo(most);
    }
}
