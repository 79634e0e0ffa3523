package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Charge;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.server.ServerConnection;
import dev.rpcx.internal.wire.ClassicFrames;
import dev.rpcx.internal.wire.ClassicWire;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Tests places that busy connections keep for their next calls. A connection does not keep them for long if other
 * connections need them, or if it does not use them itself.
 */
class IdlePlacesTest {
    private static final int FIRST = 1 << 16;

    /** A connection keeps places for this many calls. */
    private static final int BURST = 512;

    @RPCXServer("idle")
    static final class Service {
        final List<CompletableFuture<String>> waiting = new ArrayList<>();

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String here(String text) {
            return text;
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        CompletionStage<String> later() {
            CompletableFuture<String> result = new CompletableFuture<>();
            waiting.add(result);
            return result;
        }
    }

    private final HandPlatform hand = new HandPlatform();
    private final Service service = new Service();
    private final Server server = Server.builder(RegistryServer.registry(service))
            .platform(hand)
            .classic(true)
            .keepAlive(Duration.ofHours(1))
            .build()
            .start();
    private final List<EmbeddedChannel> channels = new ArrayList<>();

    @AfterEach
    void nothingIsLeft() {
        for (EmbeddedChannel channel : channels) {
            channel.close();
            hand.settle(channel);
            channel.releaseOutbound();
        }
        hand.pass(channels.get(0), 2, TimeUnit.HOURS);
        assertThat(server.core().running()).isZero();
        assertThat(server.core().ledger().audit()).isEmpty();
        assertThat(hand.heldBytes()).isZero();
    }

    private EmbeddedChannel connect() {
        EmbeddedChannel channel = hand.accept();
        channels.add(channel);
        send(channel, RawPeer.preface());
        HandPlatform.written(channel);
        return channel;
    }

    private void send(EmbeddedChannel channel, ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        hand.read(channel, all, 0, all.length);
    }

    private static ByteBuf request(int id, String method) {
        return RawPeer.frame(
                Wire.REQUEST | Wire.NAMED, id, RawPeer.prelude("idle", method).writeBytes(RawPeer.text("a")));
    }

    /** Makes this many calls, which are under way at once, and then ends them all. */
    private void burst(EmbeddedChannel channel, int generation) {
        ByteBuf all = Unpooled.buffer();
        for (int i = 0; i < BURST; i++) {
            all.writeBytes(request(generation * FIRST + i, "later"));
        }
        send(channel, all);
        service.waiting.forEach(result -> result.complete("b"));
        service.waiting.clear();
        hand.settle(channel);
        HandPlatform.written(channel);
    }

    /** Makes a call, and returns the type of the frame that answers it. */
    private int answer(EmbeddedChannel channel) {
        send(channel, request(FIRST, "here"));
        ByteBuf in = Unpooled.wrappedBuffer(HandPlatform.written(channel));
        Varint.readLength(in, Wire.MAX_FRAME_BYTES, "a frame");
        return in.readUnsignedByte() & Wire.TYPE_MASK;
    }

    private long places() {
        return server.core().ledger().held(Resource.CALLS);
    }

    @Test
    void whoComesLastHasPlacesThoughThoseBeforeHaveHadMany() {
        long bursts = 2 * server.core().ledger().max(Resource.CALLS) / BURST;
        for (int i = 0; i < bursts; i++) {
            burst(connect(), 1);
            hand.pass(channels.get(0), 1, TimeUnit.SECONDS);
            channels.forEach(hand::settle);
            assertThat(answer(connect())).as("after %s bursts", i + 1).isEqualTo(Wire.REPLY);
        }
        assertThat(server.core().running()).isZero();
    }

    @Test
    void placesThatAreNotUsedAreGivenUpThoughTheirConnectionIsLively() {
        EmbeddedChannel channel = connect();
        burst(channel, 1);
        assertThat(places()).isEqualTo(BURST);
        for (int i = 0; i < 15; i++) {
            send(channel, RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER));
            hand.pass(channel, 20, TimeUnit.MINUTES);
        }
        assertThat(places()).isZero();
        assertThat(channel.isActive()).isTrue();
        burst(channel, 2);
        assertThat(places()).isEqualTo(BURST);
    }

    /** A request that is refused has no slot, whatever its number. */
    @Test
    void aRequestThatIsRefusedMakesNoTableLarger() {
        EmbeddedChannel channel = connect();
        ServerConnection connection = channel.pipeline().get(ServerConnection.class);
        send(channel, request(FIRST | 100, "here"));
        int before = connection.tableSlots();
        for (int i = 1; i < 10; i++) {
            send(channel, request(i * FIRST | 4095, "nowhere"));
            send(channel, RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER));
            hand.pass(channel, 20, TimeUnit.MINUTES);
            assertThat(connection.tableSlots()).isLessThanOrEqualTo(before);
        }
    }

    @Test
    void aConnectionThatIsOverKeepsNothingWhileAHandlerHoldsIt() {
        EmbeddedChannel channel = connect();
        ServerConnection connection = channel.pipeline().get(ServerConnection.class);
        send(channel, request(FIRST | 900, "later"));
        hand.settle(channel);
        assertThat(service.waiting).hasSize(1);
        assertThat(connection.tableSlots()).isGreaterThan(900);
        assertThat(connection.bufferBytes()).isPositive();
        channel.close();
        hand.settle(channel);
        assertThat(connection.tableSlots()).isZero();
        assertThat(connection.bufferBytes()).isZero();
        service.waiting.get(0).complete("late");
        hand.settle(channel);
    }

    /** Makes a call of the classic wire on a connection of its own, and returns the error in its reply, or null. */
    private @Nullable RPCXException classicAnswer() {
        EmbeddedChannel channel = hand.accept();
        channels.add(channel);
        send(
                channel,
                ClassicRequests.of(
                        1, "idle", "here", List.of("text"), List.of(ByteBufUtil.getBytes(RawPeer.text("a")))));
        ByteBuf in = Unpooled.wrappedBuffer(HandPlatform.written(channel));
        return ClassicWire.readReply(in.skipBytes(ClassicFrames.LENGTH_BYTES)).error();
    }

    /**
     * Lets connections without a call keep up to half of all places, and returns how many they keep. None of the
     * connections has asked for the places of the others.
     */
    private long keepHalf() {
        long half = server.core().ledger().max(Resource.CALLS) / 2;
        for (long kept = BURST; kept <= half; kept += BURST) {
            burst(connect(), 1);
        }
        channels.forEach(hand::settle);
        hand.pass(channels.get(0), 1, TimeUnit.SECONDS);
        return places();
    }

    @Test
    void aCallOfTheClassicWireAsksForIdlePlacesWhereHalfAreTaken() {
        long idle = keepHalf();
        List<Account> others = new ArrayList<>();
        List<Charge> taken = take(server.core().ledger().max(Resource.CALLS) / 2 + 1 - idle, others);
        assertThat(classicAnswer()).isNull();
        channels.forEach(hand::settle);
        taken.forEach(Charge::release);
        others.forEach(Account::close);
        assertThat(places()).isZero();
    }

    @Test
    void aCallOfTheClassicWireThatFindsNoPlaceMakesRoomForTheNext() {
        long idle = keepHalf();
        List<Account> others = new ArrayList<>();
        List<Charge> taken = take(server.core().ledger().max(Resource.CALLS) - idle, others);
        assertThat(Objects.requireNonNull(classicAnswer()).code()).isEqualTo(RPCXException.Code.OVERLOADED);
        channels.forEach(hand::settle);
        assertThat(classicAnswer()).isNull();
        taken.forEach(Charge::release);
        others.forEach(Account::close);
        assertThat(places()).isZero();
    }

    /**
     * Takes this many places, or almost. Each of the others has a share of what is left, so the very last are nobody's.
     */
    private List<Charge> take(long count, List<Account> others) {
        List<Charge> taken = new ArrayList<>();
        long left = count;
        long before = -1;
        while (left > 0 && left != before) {
            before = left;
            Account other = Objects.requireNonNull(server.core().ledger().open(null));
            others.add(other);
            Charge charge = other.charge(Resource.CALLS);
            taken.add(charge);
            while (left > 0 && charge.add(1)) {
                left--;
            }
        }
        return taken;
    }
}
