package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.ProtoFields;
import dev.rpcx.internal.call.StreamsTest;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests bodies of each message that are larger than a side accepts, in each direction. The tests check which side
 * reports it, and that the connection goes on.
 */
@Timeout(60)
class WireSizesTest {
    private static final int GENERATION = 1 << 16;
    private static final int ID = GENERATION;
    private static final int MAX_BYTES = 100;

    @RPCXServer("sizes")
    static final class Sizes {
        @Method
        String echo(String text) {
            return text;
        }

        @Method
        String large(int characters) {
            return "x".repeat(characters);
        }

        @Method
        Flow.Publisher<String> growing(int items) {
            return new StreamsTest.Made<>(items, i -> "x".repeat(60 * i));
        }

        @Method
        CompletableFuture<Integer> take(Flow.Publisher<String> texts) {
            StreamsTest.Collected<String> collected = new StreamsTest.Collected<>(10);
            texts.subscribe(collected);
            return collected.end.thenApply(all -> all.size());
        }
    }

    @RPCXClient(remoteServerName = "sizes")
    interface Taking {
        CompletableFuture<Integer> take(Flow.Publisher<String> texts);

        CompletableFuture<String> echo(String text);
    }

    private Server server;

    @BeforeEach
    void start() {
        server = Server.builder(RegistryServer.registry(new Sizes()))
                .host("127.0.0.1")
                .maxMessageBytes(MAX_BYTES)
                .build()
                .start();
    }

    @AfterEach
    void stop() {
        server.stop(Duration.ofMillis(200));
    }

    private RawPeer peer(ByteBuf settings) throws IOException {
        RawPeer peer = new RawPeer(server.port());
        peer.send(RawPeer.preface());
        peer.send(RawPeer.frame(Wire.SETTINGS, 0, settings));
        peer.readPreface();
        return peer;
    }

    private static ByteBuf call(String method, ByteBuf body) {
        return RawPeer.frame(
                Wire.REQUEST | Wire.NAMED, ID, RawPeer.prelude("sizes", method).writeBytes(body));
    }

    private static ByteBuf number(int field, long value) {
        ByteBuf message = Unpooled.buffer();
        ProtoFields.writeNumber(message, field, value);
        return message;
    }

    private static void isTooLarge(RawPeer peer, RPCXException.Executed executed) throws IOException {
        RawPeer.Frame frame = peer.readAnswer();
        assertThat(frame.head()).isEqualTo(Wire.ERROR);
        assertThat(frame.id()).isEqualTo(ID);
        RPCXException error = WireError.read(Unpooled.wrappedBuffer(frame.payload()));
        assertThat(error.code()).isEqualTo(RPCXException.Code.TOO_LARGE);
        assertThat(error.executed()).isEqualTo(executed);
        peer.send(RawPeer.request(ID + GENERATION, "sizes", "echo", "next"));
        RawPeer.Frame next = peer.readAnswer();
        assertThat(next.head()).isEqualTo(Wire.REPLY);
        assertThat(next.id()).isEqualTo(ID + GENERATION);
    }

    @Test
    void aRequestOfOneFrameThatIsTooLargeIsRefused() throws IOException {
        try (RawPeer peer = peer(Unpooled.EMPTY_BUFFER)) {
            peer.send(call("echo", RawPeer.text("x".repeat(MAX_BYTES))));
            isTooLarge(peer, RPCXException.Executed.NOT_EXECUTED);
        }
    }

    @Test
    void aRequestInPartsThatIsTooLargeIsRefusedAndItsPartsArePassedOver() throws IOException {
        try (RawPeer peer = peer(Unpooled.EMPTY_BUFFER)) {
            peer.send(RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.MORE, ID, RawPeer.prelude("sizes", "echo")));
            for (int i = 0; i < 4; i++) {
                peer.send(RawPeer.frame(Wire.PART | Wire.MORE, ID, Unpooled.wrappedBuffer(new byte[40])));
            }
            isTooLarge(peer, RPCXException.Executed.NOT_EXECUTED);
        }
    }

    @Test
    void aResultAboveWhatTheClientTakesIsNotSent() throws IOException {
        try (RawPeer peer = peer(number(Settings.MAX_MESSAGE, 50))) {
            peer.send(call("large", number(1, 60)));
            isTooLarge(peer, RPCXException.Executed.EXECUTED);
        }
    }

    @Test
    void anItemAboveWhatTheClientTakesEndsItsStream() throws IOException {
        try (RawPeer peer = peer(number(Settings.MAX_MESSAGE, MAX_BYTES))) {
            peer.send(call("growing", number(1, 5)));
            peer.send(RawPeer.frame(Wire.CREDIT, ID, Unpooled.wrappedBuffer(new byte[] {10})));
            assertThat(peer.readAnswer().type()).isEqualTo(Wire.ITEM);
            assertThat(peer.readAnswer().type()).isEqualTo(Wire.ITEM);
            isTooLarge(peer, RPCXException.Executed.EXECUTED);
        }
    }

    @Test
    void anItemAboveWhatTheServerTakesEndsItsCall() throws IOException {
        for (boolean parts : new boolean[] {false, true}) {
            try (RawPeer peer = peer(Unpooled.EMPTY_BUFFER)) {
                peer.send(call("take", Unpooled.EMPTY_BUFFER));
                assertThat(peer.readAnswer().type()).isEqualTo(Wire.CREDIT);
                ByteBuf item = RawPeer.text("x".repeat(MAX_BYTES));
                if (parts) {
                    peer.send(RawPeer.frame(Wire.ITEM | Wire.MORE, ID, item.readSlice(60)));
                    peer.send(RawPeer.frame(Wire.PART | Wire.MORE, ID, item));
                    // the part belongs to a call that has ended by now
                    peer.send(RawPeer.frame(Wire.PART, ID, Unpooled.EMPTY_BUFFER));
                } else {
                    peer.send(RawPeer.frame(Wire.ITEM, ID, item));
                }
                isTooLarge(peer, RPCXException.Executed.EXECUTED);
            }
        }
    }

    @Test
    void aClientSendsNoItemAboveWhatTheServerTakes() throws Exception {
        try (Client client = Client.standard()) {
            Taking calls = client.create(Taking.class, "127.0.0.1", server.port());
            CompletableFuture<Integer> good = calls.take(new StreamsTest.Made<>(3, i -> "small"));
            assertThat(good.get(10, TimeUnit.SECONDS)).isEqualTo(3);
            CompletableFuture<Integer> call = calls.take(new StreamsTest.Made<>(3, i -> "x".repeat(60 * i)));
            assertThat(call.handle((value, thrown) -> String.valueOf(thrown)).get(10, TimeUnit.SECONDS))
                    .contains("an item of 122 bytes (expected: at most 100)");
            assertThat(calls.echo("next").get(10, TimeUnit.SECONDS)).isEqualTo("next");
        }
    }
}
