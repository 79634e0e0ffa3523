package dev.rpcx.internal.client;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.Choice;
import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.Endpoints;
import dev.rpcx.HandPlatform;
import dev.rpcx.Inside;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RawPeer;
import dev.rpcx.RouteBy;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests which instances get the calls. */
@Timeout(60)
class ChooserTest {
    @RPCXClient(remoteServerName = "there")
    interface Remote {
        CompletableFuture<String> echo(@RouteBy int key);

        Flow.Publisher<String> watch(@RouteBy int key);

        CompletableFuture<String> text(@RouteBy int key, String text);

        CompletableFuture<Integer> take(Flow.Publisher<String> items);
    }

    private final HandPlatform hand = new HandPlatform();
    private final Client client = Inside.on(Client.builder(), hand).build();
    private final List<Client> clients = new ArrayList<>();
    private final List<EmbeddedChannel> channels = hand.opened;

    @AfterEach
    void end() {
        Inside.core(client).end();
        clients.forEach(client -> Inside.core(client).end());
        for (EmbeddedChannel channel : List.copyOf(channels)) {
            hand.settle(channel);
            channel.close();
            hand.settle(channel);
            channel.releaseOutbound();
        }
    }

    /** The names are such as pods have, and the JDK's hash is the same for both. */
    @Test
    void keysAreSharedByInstancesWhoseNamesHaveOneHash() {
        Endpoint[] both = {new Endpoint("pod-c2", 9000), new Endpoint("pod-ap", 9000)};
        assertThat(ClientAddress.keyOf(both[0]).hashCode())
                .isEqualTo(ClientAddress.keyOf(both[1]).hashCode());
        Chooser chooser = new ClientCluster(Inside.core(client), 1, 1, Choice.CONSISTENT_HASH)
                .start(Endpoints.of(both))
                .chooser();
        int[] keys = new int[2];
        for (int key = 1; key <= 2_000; key++) {
            keys[chooser.first(key)]++;
        }
        assertThat(keys[0]).isBetween(500, 1_500);
    }

    /** Makes a proxy for two connected instances, of which the first so many have been ejected a moment ago. */
    private Remote twoBehind(Choice choice, int ejected) {
        return behind(choice, ejected, new Endpoint("first", 1), new Endpoint("second", 1));
    }

    private Remote behind(Choice choice, int ejected, Endpoint... instances) {
        Client calling = Inside.on(Client.builder(), hand)
                .eventLoops(1)
                .connections(1, 1)
                .choice(choice)
                .build();
        clients.add(calling);
        Remote remote = calling.create(Remote.class, Endpoints.of(instances));
        pass(1_000);
        ByteBuf said = RawPeer.preface();
        said.writeBytes(RawPeer.frame(Wire.DICTIONARY, 0, Unpooled.EMPTY_BUFFER));
        channels.forEach(channel -> say(channel, said));
        for (ClientAddress address : addresses()) {
            assertThat(address.ready()).isNotNull();
        }
        for (int i = 0; i < ejected; i++) {
            addresses()[i].health().eject();
        }
        pass(2_000);
        return remote;
    }

    private ClientAddress[] addresses() {
        return Inside.core(clients.get(0)).clusters.values().iterator().next().chooser().all;
    }

    private void say(EmbeddedChannel channel, ByteBuf said) {
        byte[] all = ByteBufUtil.getBytes(said);
        hand.read(channel, all, 0, all.length);
    }

    private void pass(int millis) {
        hand.ticker.advance(millis, TimeUnit.MILLISECONDS);
        channels.forEach(hand::settle);
    }

    private int load(int address) {
        channels.forEach(hand::settle);
        return Objects.requireNonNull(addresses()[address].ready()).load();
    }

    private static void call(Remote remote, int calls) {
        for (int key = 1; key <= calls; key++) {
            remote.echo(key);
        }
    }

    private EmbeddedChannel firstChannel() {
        ClientConnection first = addresses()[0].ready();
        return channels.stream()
                .filter(each -> each.pipeline().get(ClientConnection.class) == first)
                .findFirst()
                .orElseThrow();
    }

    @ParameterizedTest
    @EnumSource(Choice.class)
    void anInstanceThatComesBackHasOneCallAtATimeUntilOneIsAnswered(Choice choice) {
        Remote remote = twoBehind(choice, 1);
        call(remote, 100);
        assertThat(load(0)).isOne();
        assertThat(load(1)).isEqualTo(99);
        // this frame answers the first call in slot 0
        say(firstChannel(), RawPeer.frame(Wire.REPLY, 1 << 16, RawPeer.text("x")));
        assertThat(load(0)).isZero();
        call(remote, 100);
        assertThat(load(0)).isGreaterThan(20);
    }

    @ParameterizedTest
    @EnumSource(Choice.class)
    void anInstanceWhoseTrialFailsIsEjectedAgainAtOnce(Choice choice) {
        Remote remote = twoBehind(choice, 1);
        call(remote, 100);
        assertThat(load(0)).isOne();
        ByteBuf error = Unpooled.buffer();
        WireError.write(error, RPCXException.refused(RPCXException.Code.UNAVAILABLE, "by the test"));
        say(firstChannel(), RawPeer.frame(Wire.ERROR, 1 << 16, error));
        assertThat(addresses()[0].health().isEjected()).isTrue();
        call(remote, 100);
        assertThat(load(0)).isZero();
    }

    /** Otherwise quiet streams would have one trial after the other, and no other call would reach the instance. */
    @ParameterizedTest
    @EnumSource(Choice.class)
    void aStreamThatBringsNothingYetEndsATrialOnceItsServerIsHeardOf(Choice choice) {
        Remote remote = twoBehind(choice, 1);
        for (int key = 0; load(0) == 0; key++) {
            remote.watch(key).subscribe(new StreamsTest.Collected<>(1));
        }
        for (int i = 0; i < 10; i++) {
            pass(500);
        }
        assertThat(addresses()[0].health().isUnproven())
                .as("while its server is silent")
                .isTrue();
        say(firstChannel(), RawPeer.frame(Wire.PONG, 0, Unpooled.EMPTY_BUFFER));
        pass(1_000);
        pass(1_000);
        assertThat(addresses()[0].health().isUnproven()).isFalse();
        call(remote, 100);
        assertThat(load(0)).isGreaterThan(20);
    }

    /** Otherwise an upload of hours has the trial to itself, and no other call reaches the instance. */
    @Test
    void anUploadEndsATrialOnceItsServerAsksForItems() {
        Remote remote = twoBehind(Choice.LEAST_LOADED, 1);
        while (load(0) == 0) {
            remote.take(to -> {});
        }
        pass(500);
        assertThat(addresses()[0].health().isUnproven()).isTrue();
        assertThat(addresses()[0].health().isFree()).isFalse();
        say(
                firstChannel(),
                RawPeer.frame(Wire.CREDIT, 1 << 16, Unpooled.buffer().writeByte(1)));
        assertThat(addresses()[0].health().isUnproven()).isFalse();
        assertThat(load(0)).as("in flight").isOne();
    }

    /** A server ends the connection of a client that sends too many PINGs in a second. */
    @Test
    void streamsAtInstancesOnTrialAskTheirServerOnceForAll() {
        Remote remote = twoBehind(Choice.LEAST_LOADED, 2);
        channels.forEach(HandPlatform::written);
        for (int i = 0; i < 300; i++) {
            remote.watch(i).subscribe(new StreamsTest.Collected<>(1));
        }
        assertThat(load(0) + load(1)).isEqualTo(300);
        for (EmbeddedChannel channel : channels) {
            assertThat(frames(HandPlatform.written(channel), Wire.PING)).isEqualTo(1);
        }
    }

    private static int frames(byte[] written, int type) {
        ByteBuf left = Unpooled.wrappedBuffer(written);
        int found = 0;
        while (left.isReadable()) {
            int length = (int) Varint.read(left);
            found += (left.getByte(left.readerIndex()) & Wire.TYPE_MASK) == type ? 1 : 0;
            left.skipBytes(length);
        }
        return found;
    }

    @ParameterizedTest
    @EnumSource(Choice.class)
    @SuppressWarnings("NullAway") // a caller may pass null by mistake, and nothing prevents it
    void aCallThatCannotBeSentGivesTheTrialToTheNext(Choice choice) {
        Remote remote = twoBehind(choice, 1);
        for (int key = 1; key <= 100; key++) {
            assertThat(remote.text(key, null)).isCompletedExceptionally();
        }
        assertThat(load(0)).isZero();
        call(remote, 100);
        assertThat(load(0)).isOne();
    }

    @ParameterizedTest
    @EnumSource(Choice.class)
    void whoHasAskedOneGetsNoneThatIsEjected(Choice choice) {
        twoBehind(choice, 0);
        Chooser chooser =
                Inside.core(clients.get(0)).clusters.values().iterator().next().chooser();
        ClientAddress out = chooser.all[0];
        ClientAddress well = chooser.all[1];
        assertThat(chooser.hasFreeBeside(well)).isTrue();
        out.health().eject();
        assertThat(chooser.hasFreeBeside(well)).isFalse();
        assertThat(chooser.pickBeside(List.of(well))).isNull();
        pass(2_000);
        assertThat(chooser.hasFreeBeside(well)).isTrue();
        assertThat(chooser.pickBeside(List.of(well))).as("on trial").isSameAs(out.ready());
        assertThat(chooser.pickBeside(List.of(well))).isNull();
        assertThat(chooser.pickBeside(List.of(out))).isSameAs(well.ready());
    }

    /** The ejected instance hangs, and the caller of a call to it would learn nothing until the call's time is over. */
    @ParameterizedTest
    @EnumSource(
            value = RPCXException.Code.class,
            names = {"NOT_FOUND", "UNAUTHENTICATED", "OVERLOADED"})
    void whatOneInstanceRefusesDoesNotGoToOneThatIsEjected(RPCXException.Code code) {
        Remote remote = twoBehind(Choice.LEAST_LOADED, 0);
        addresses()[1].health().eject();
        channels.forEach(HandPlatform::written);
        CompletableFuture<String> call = remote.echo(1);
        int asked = 0;
        while (load(0) > 0 && !call.isDone()) {
            asked++;
            ByteBuf error = Unpooled.buffer();
            WireError.write(error, RPCXException.refused(code, "no"));
            say(firstChannel(), RawPeer.frame(Wire.ERROR, id(HandPlatform.written(firstChannel())), error));
        }
        assertThat(load(1)).isZero();
        assertThat(call.handle((reply, why) -> why).join())
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.code()).isEqualTo(code));
        assertThat(asked).isEqualTo(code == RPCXException.Code.OVERLOADED ? Attempts.MAX_SENT : 1);
    }

    private List<EmbeddedChannel> channelsWithCalls() {
        return channels.stream()
                .filter(each -> {
                    ClientConnection connection = each.pipeline().get(ClientConnection.class);
                    return connection != null && connection.slots.taken() > 0;
                })
                .toList();
    }

    /** The first instance drains before the call is sent, the second one refuses it, and the third one answers. */
    @Test
    void anAttemptThatCameToNobodyTakesNothingFromTheNextOnes() {
        Remote remote = behind(
                Choice.LEAST_LOADED,
                0,
                new Endpoint("leaving", 1),
                new Endpoint("refusing", 1),
                new Endpoint("taking", 1));
        channels.forEach(HandPlatform::written);
        CompletableFuture<String> call = remote.echo(1);
        say(channelsWithCalls().get(0), RawPeer.frame(Wire.GOAWAY, 0, Unpooled.EMPTY_BUFFER));
        List.copyOf(channels).forEach(hand::settle);
        EmbeddedChannel refusing = channelsWithCalls().get(0);
        ByteBuf error = Unpooled.buffer();
        WireError.write(error, RPCXException.refused(RPCXException.Code.NOT_FOUND, "not here"));
        say(refusing, RawPeer.frame(Wire.ERROR, id(HandPlatform.written(refusing)), error));
        assertThat(call).isNotDone();
        List.copyOf(channels).forEach(hand::settle);
        EmbeddedChannel taking = channelsWithCalls().get(0);
        assertThat(taking).isNotSameAs(refusing);
        say(taking, RawPeer.frame(Wire.REPLY, id(HandPlatform.written(taking)), RawPeer.text("here")));
        assertThat(call).isCompletedWithValue("here");
    }

    /** Returns the id of the first request. */
    private static int id(byte[] written) {
        ByteBuf left = Unpooled.wrappedBuffer(written);
        while (true) {
            int length = (int) Varint.read(left);
            if ((left.getByte(left.readerIndex()) & Wire.TYPE_MASK) == Wire.REQUEST) {
                return left.getInt(left.readerIndex() + 1);
            }
            left.skipBytes(length);
        }
    }

    @ParameterizedTest
    @EnumSource(Choice.class)
    void whoFindsNobodyButInstancesOnTrialTakesOneOfThem(Choice choice) {
        call(twoBehind(choice, 2), 100);
        assertThat(load(0) + load(1)).isEqualTo(100);
    }
}
