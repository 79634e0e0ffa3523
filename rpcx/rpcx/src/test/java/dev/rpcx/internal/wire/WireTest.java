package dev.rpcx.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.CallContext;
import dev.rpcx.ClassicRequests;
import dev.rpcx.Client;
import dev.rpcx.LongForm;
import dev.rpcx.Metadata;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RawPeer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import dev.rpcx.internal.Varint;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.time.Duration;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests what a server does with bytes that are cut, merged, too long, unknown or random, while another connection goes
 * on.
 */
@Timeout(300)
class WireTest {
    private static final int ID = 1 << 16;

    @RPCXServer("echo")
    static final class Echo {
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String inline(String text) {
            return text;
        }

        @Method
        String virtual(String text) {
            return text;
        }

        @Method
        String metadata(String name) {
            return String.valueOf(CallContext.current().orElseThrow().metadata().get(name));
        }
    }

    @RPCXClient(remoteServerName = "echo")
    interface EchoClient {
        String inline(String text);
    }

    private Server server;
    private Client client;
    private EchoClient unhurt;

    @BeforeEach
    void start() {
        server = Server.builder(RegistryServer.registry(new Echo()))
                .classic(true)
                .maxCalls(100)
                .build()
                .start();
        client = Client.standard();
        unhurt = client.create(EchoClient.class, "127.0.0.1", server.port());
        assertThat(unhurt.inline("before")).isEqualTo("before");
    }

    @AfterEach
    void stop() {
        assertThat(unhurt.inline("after")).isEqualTo("after");
        client.close();
        server.stop(Duration.ofMillis(200));
    }

    private static ByteBuf conversation() {
        return Unpooled.wrappedBuffer(
                RawPeer.preface(),
                RawPeer.frame(Wire.SETTINGS, 0, Unpooled.EMPTY_BUFFER),
                RawPeer.request(ID, "echo", "inline", "HelloWorld"),
                RawPeer.request(ID + 1, "echo", "virtual", "x".repeat(300)));
    }

    private static void expectConversation(RawPeer peer) throws IOException {
        peer.readPreface();
        int seen = 0;
        for (int i = 0; i < 2; i++) {
            RawPeer.Frame reply = peer.readAnswer();
            assertThat(reply.head()).isEqualTo(Wire.REPLY);
            String text = reply.id() == ID ? "HelloWorld" : "x".repeat(300);
            assertThat(reply.payload()).isEqualTo(ByteBufUtil.getBytes(RawPeer.text(text)));
            seen |= 1 << reply.id() - ID;
        }
        assertThat(seen).isEqualTo(3);
    }

    @Test
    void framesMaySplitAtEveryByte() throws IOException {
        int bytes = conversation().readableBytes();
        for (int split = 1; split < bytes; split++) {
            try (RawPeer peer = new RawPeer(server.port())) {
                ByteBuf all = conversation();
                peer.send(all.readSlice(split));
                peer.send(all);
                expectConversation(peer);
            }
        }
    }

    @Test
    void framesMayArriveByteByByte() throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            ByteBuf all = conversation();
            while (all.isReadable()) {
                peer.send(all.readSlice(1));
            }
            expectConversation(peer);
        }
    }

    @Test
    void aConnectionMayBeCutAtEveryByte() throws IOException {
        int bytes = conversation().readableBytes();
        for (int cut = 0; cut < bytes; cut++) {
            try (RawPeer peer = new RawPeer(server.port())) {
                peer.send(conversation().readSlice(cut));
            }
        }
        LongForm.figure(2, "split and cut at each of %d bytes of a conversation", bytes);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "00",
                "04",
                "81808001",
                "ffffff7f",
                "ffffffff0f",
                "ffffffffffffffffff01",
                "85808000",
                "8500",
                "818001"
            })
    void aLengthThatIsNoneEndsTheConnectionWithAWord(String hex) throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(RawPeer.preface());
            peer.send(Unpooled.wrappedBuffer(ByteBufUtil.decodeHexDump(hex), new byte[8]));
            peer.readPreface();
            RawPeer.Frame error = peer.readAnswer();
            assertThat(error.head()).isEqualTo(Wire.ERROR);
            assertThat(error.id()).isZero();
            assertThat(WireError.read(Unpooled.wrappedBuffer(error.payload())).code())
                    .isEqualTo(RPCXException.Code.PROTOCOL);
            assertThat(peer.readToEnd()).isEmpty();
        }
    }

    @Test
    void unknownTypesFlagsAndSettingsAreSurvived() throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(RawPeer.preface());
            peer.send(RawPeer.frame(0, 77, RawPeer.text("a later version's")));
            peer.send(RawPeer.frame(0, 0, Unpooled.EMPTY_BUFFER));
            peer.send(RawPeer.frame(Wire.SETTINGS, 0, Unpooled.wrappedBuffer(new byte[] {(byte) 0xF8, 1, 5})));
            peer.send(RawPeer.frame(Wire.CANCEL, 12345, Unpooled.EMPTY_BUFFER));
            peer.send(RawPeer.frame(Wire.PART, 12345, RawPeer.text("of nothing")));
            peer.send(RawPeer.frame(Wire.PING, 9, Unpooled.EMPTY_BUFFER));
            peer.readPreface();
            RawPeer.Frame pong = peer.readAnswer();
            assertThat(pong.type()).isEqualTo(Wire.PONG);
            assertThat(pong.id()).isEqualTo(9);
        }
    }

    @Test
    void aRequestThatCannotBeReadFailsAloneAndIsNotExecuted() throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(RawPeer.preface());
            ByteBuf broken = RawPeer.prelude("echo", "inline").writeBytes(new byte[] {10, 100, 1});
            peer.send(RawPeer.frame(Wire.REQUEST | Wire.NAMED, ID, broken));
            peer.send(RawPeer.request(ID + 1, "echo", "inline", "next"));
            peer.readPreface();
            RawPeer.Frame first = peer.readAnswer();
            assertThat(first.head()).isEqualTo(Wire.ERROR);
            RPCXException error = WireError.read(Unpooled.wrappedBuffer(first.payload()));
            assertThat(error.code()).isEqualTo(RPCXException.Code.INVALID);
            assertThat(error.executed()).isEqualTo(RPCXException.Executed.NOT_EXECUTED);
            assertThat(peer.readAnswer().head()).isEqualTo(Wire.REPLY);
        }
    }

    @Test
    void aRequestThatComesTwiceEndsTheConnectionAndIsNotExecutedAgain() throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(RawPeer.preface());
            peer.send(RawPeer.request(ID, "echo", "virtual", "once"));
            peer.readPreface();
            assertThat(peer.readAnswer().type()).isEqualTo(Wire.REPLY);
            peer.send(RawPeer.request(ID, "echo", "virtual", "once"));
            RawPeer.Frame end = peer.readAnswer();
            assertThat(end.id()).isZero();
            assertThat(WireError.read(Unpooled.wrappedBuffer(end.payload())).code())
                    .isEqualTo(RPCXException.Code.PROTOCOL);
            assertThat(peer.readToEnd()).isEmpty();
        }
    }

    @Test
    void aSlotBeyondTheLimitIsRefusedAndASlotInUseEndsTheConnection() throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(RawPeer.preface());
            peer.send(RawPeer.request(ID + 100, "echo", "inline", "too many"));
            peer.readPreface();
            RawPeer.Frame refused = peer.readAnswer();
            assertThat(WireError.read(Unpooled.wrappedBuffer(refused.payload())).code())
                    .isEqualTo(RPCXException.Code.OVERLOADED);
            ByteBuf begun = RawPeer.prelude("echo", "inline").writeBytes(RawPeer.text("x"));
            peer.send(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.MORE, ID, begun));
            peer.send(RawPeer.request(ID + (1 << 16), "echo", "inline", "same slot"));
            assertThat(peer.readAnswer().id()).isZero();
            assertThat(peer.readToEnd()).isEmpty();
        }
    }

    @Test
    void aMessageOfOneFrameIsHeldToTheServersOwnLimit() throws IOException {
        Server small = Server.builder(RegistryServer.registry(new Echo()))
                .maxMessageBytes(100)
                .build()
                .start();
        try (RawPeer peer = new RawPeer(small.port())) {
            peer.send(RawPeer.preface());
            peer.send(RawPeer.request(ID, "echo", "inline", "x".repeat(101)));
            isRefusedAsTooLargeAndTheNextIsAnswered(peer);
        } finally {
            small.stop(Duration.ofMillis(100));
        }
    }

    private static void isRefusedAsTooLargeAndTheNextIsAnswered(RawPeer peer) throws IOException {
        peer.readPreface();
        RawPeer.Frame refused = peer.readAnswer();
        assertThat(WireError.read(Unpooled.wrappedBuffer(refused.payload())).code())
                .isEqualTo(RPCXException.Code.TOO_LARGE);
        peer.send(RawPeer.request(ID + 1, "echo", "inline", "next"));
        assertThat(peer.readAnswer().head()).isEqualTo(Wire.REPLY);
    }

    @Test
    void aMessageThatNeverEndsIsStoppedAtTheLimit() throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(RawPeer.preface());
            peer.send(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.MORE, ID, RawPeer.prelude("echo", "inline")));
            ByteBuf part =
                    RawPeer.frame(Wire.PART | Wire.MORE, ID, Unpooled.wrappedBuffer(new byte[Wire.MAX_PAYLOAD_BYTES]));
            for (int i = 0; i < Wire.MAX_MESSAGE_BYTES / Wire.MAX_PAYLOAD_BYTES + 2; i++) {
                peer.send(part.duplicate());
            }
            isRefusedAsTooLargeAndTheNextIsAnswered(peer);
        }
    }

    @Test
    void metadataReachesTheHandlerAndTooMuchOfItEndsTheConnection() throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(RawPeer.preface());
            ByteBuf request = RawPeer.prelude("echo", "metadata");
            MetadataFields.write(request, Metadata.EMPTY.with("tenant", "blue").with("trace", "1"));
            peer.send(RawPeer.frame(
                    Wire.REQUEST | Wire.NAMED | Wire.METADATA, ID, request.writeBytes(RawPeer.text("tenant"))));
            peer.readPreface();
            assertThat(peer.readAnswer().payload()).isEqualTo(ByteBufUtil.getBytes(RawPeer.text("blue")));
            ByteBuf large = RawPeer.prelude("echo", "metadata");
            Varint.write(large, Metadata.MAX_BYTES + 1);
            peer.send(RawPeer.frame(
                    Wire.REQUEST | Wire.NAMED | Wire.METADATA, ID, large.writeZero(Metadata.MAX_BYTES + 1)));
            assertThat(peer.readAnswer().id()).isZero();
            assertThat(peer.readToEnd()).isEmpty();
        }
    }

    @Test
    void randomBytesHurtNobodyElse() throws IOException {
        int rounds = Integer.getInteger("rpcx.fuzz.rounds", LongForm.of(300, 20_000));
        long seed = Long.getLong("rpcx.fuzz.seed", 20261121L);
        Random random = new Random(seed);
        for (int round = 0; round < rounds; round++) {
            try (RawPeer peer = new RawPeer(server.port())) {
                ByteBuf bytes = conversation();
                if (round % 2 == 0) {
                    for (int i = 1 + random.nextInt(8); i > 0; i--) {
                        bytes.setByte(random.nextInt(bytes.readableBytes()), random.nextInt(256));
                    }
                } else {
                    byte[] noise = new byte[random.nextInt(2000)];
                    random.nextBytes(noise);
                    bytes = Unpooled.wrappedBuffer(RawPeer.preface(), Unpooled.wrappedBuffer(noise));
                }
                peer.send(bytes);
                peer.socket.shutdownOutput();
                peer.readToEnd();
            }
            if (round % 50 == 0) {
                assertThat(unhurt.inline("round " + round)).isEqualTo("round " + round);
            }
        }
        LongForm.figure(
                2,
                "%d connections of random or changed bytes, seed %d: another caller was answered throughout",
                rounds,
                seed);
    }

    @Test
    void aClassicRequestOnTheSamePortIsAnswered() throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            byte[] value = ByteBufUtil.getBytes(RawPeer.text("HelloWorld"));
            ByteBuf request = ClassicRequests.of(
                    -42L, "echo", "virtual", java.util.List.of("java.lang.String"), java.util.List.of(value));
            ByteBuf copy = request.copy();
            peer.send(copy.readSlice(7));
            peer.send(copy);
            peer.send(ClassicRequests.of(7L, "echo", "nothing", java.util.List.of(), java.util.List.of()));
            ClassicWire.Reply reply = classicReply(peer);
            ClassicWire.Reply other = classicReply(peer);
            if (reply.id() != -42L) {
                ClassicWire.Reply swap = reply;
                reply = other;
                other = swap;
            }
            assertThat(reply.id()).isEqualTo(-42L);
            assertThat(reply.result()).isEqualTo(value);
            assertThat(reply.error()).isNull();
            assertThat(other.error()).isNotNull();
            assertThat(other.error().code()).isEqualTo(RPCXException.Code.NOT_FOUND);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"7fffffff", "80000000", "ffffffff", "00500000"})
    void aClassicLengthAboveTheLimitEndsTheConnection(String hex) throws IOException {
        try (RawPeer peer = new RawPeer(server.port())) {
            peer.send(Unpooled.wrappedBuffer(ByteBufUtil.decodeHexDump(hex)));
            ClassicWire.Reply why = classicReply(peer);
            assertThat(why.id()).isZero();
            assertThat(java.util.Objects.requireNonNull(why.error()).code()).isEqualTo(RPCXException.Code.PROTOCOL);
            assertThat(peer.readToEnd()).isEmpty();
        }
    }

    private static ClassicWire.Reply classicReply(RawPeer peer) throws IOException {
        int length = Unpooled.wrappedBuffer(peer.read(4)).readInt();
        return ClassicWire.readReply(Unpooled.wrappedBuffer(peer.read(length)));
    }
}
