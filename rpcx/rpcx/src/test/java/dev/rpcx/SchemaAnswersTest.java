package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.codec.CompiledSources;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.SchemaFrames;
import dev.rpcx.internal.wire.Wire;
import dev.rpcx.internal.wire.WireError;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests how a server answers a question for the members of methods, and what a client that asks for much costs it. */
@Timeout(60)
class SchemaAnswersTest {
    private static final int COMPONENTS = 250;

    /** Makes a service with a method whose members do not fit into one frame. */
    private static Object largeService() throws ReflectiveOperationException {
        String components = IntStream.rangeClosed(1, COMPONENTS)
                .mapToObj(i -> "int component" + "x".repeat(200) + i)
                .collect(Collectors.joining(", "));
        ClassLoader loader = CompiledSources.loader(Map.of(
                "large.Types",
                "package large;\nimport dev.rpcx.*;\npublic class Types {\n public record Large(" + components
                        + ") {}\n @RPCXServer(\"large\")\n public static class Service {\n"
                        + " @Method public int count(Large large) { return 0; }\n }\n}\n"));
        return loader.loadClass("large.Types$Service").getDeclaredConstructor().newInstance();
    }

    @RPCXServer("small")
    static final class Small {
        @Method
        String echo(String text) {
            return text;
        }

        @Method
        int add(int a, int b) {
            return a + b;
        }
    }

    private static Server server(Object... services) {
        return Server.builder(RegistryServer.registry(services))
                .host("127.0.0.1")
                .build()
                .start();
    }

    private static RawPeer greeted(Server server) throws IOException {
        RawPeer peer = new RawPeer(server.port());
        peer.send(RawPeer.preface());
        peer.readPreface();
        while (peer.read().head() != Wire.DICTIONARY) {}
        return peer;
    }

    private static ByteBuf question(Integer... numbers) {
        return RawPeer.frame(Wire.SCHEMA, 0, SchemaFrames.question(List.of(numbers)));
    }

    @Test
    void theMembersOfAllMethodsOfAQuestionAreTold() throws Exception {
        Server server = server(largeService(), new Small());
        try (RawPeer peer = greeted(server)) {
            peer.send(question(1, 2, 17));
            List<SchemaFrames.Part> parts = new ArrayList<>();
            List<Integer> heads = new ArrayList<>();
            do {
                RawPeer.Frame frame = peer.read();
                assertThat(frame.id()).isZero();
                heads.add(frame.head());
                SchemaFrames.readAnswer(Unpooled.wrappedBuffer(frame.payload()), parts::add);
            } while (heads.get(heads.size() - 1) == (Wire.SCHEMA | Wire.MORE));
            assertThat(heads).hasSizeGreaterThan(4).endsWith(Wire.SCHEMA);
            assertThat(parts).extracting(SchemaFrames.Part::method).containsOnly(1L, 2L);
            assertThat(parts.stream().filter(part -> part.method() == 1).flatMap(part -> part.members().stream()))
                    .hasSize(COMPONENTS + 1);
            assertThat(parts.stream().filter(part -> part.method() == 2).flatMap(part -> part.members().stream()))
                    .extracting(MethodSchema.Member::name)
                    .containsExactly("a", "b", "value");
            // the connection serves as before
            peer.send(RawPeer.request((1 << 16) + 1, "small", "echo", "still here"));
            assertThat(peer.readAnswer().payload()).isEqualTo(ByteBufUtil.getBytes(RawPeer.text("still here")));
        } finally {
            server.stop(Duration.ZERO);
        }
    }

    @Test
    void aSecondQuestionEndsTheConnection() throws Exception {
        Server server = server(new Small());
        try (RawPeer peer = greeted(server)) {
            peer.send(question(9));
            RawPeer.Frame nothing = peer.read();
            assertThat(nothing.head()).isEqualTo(Wire.SCHEMA);
            assertThat(nothing.payload()).isEmpty();
            peer.send(question(1));
            RawPeer.Frame error = peer.read();
            assertThat(error.head()).isEqualTo(Wire.ERROR);
            assertThat(WireError.read(Unpooled.wrappedBuffer(error.payload())))
                    .hasMessage("a question for schemas twice (expected: once)");
            assertThat(peer.readToEnd()).isEmpty();
        } finally {
            server.stop(Duration.ZERO);
        }
    }

    /** Without that, each connection could make the server hold all members of all its methods. */
    @Test
    void anAnswerThatNobodyReadsWaitsOutsideTheSocketsQueue() throws Exception {
        HandPlatform hand = new HandPlatform();
        Server server = Server.builder(RegistryServer.registry(largeService()))
                .platform(hand)
                .keepAlive(Duration.ofMinutes(10))
                .build()
                .start();
        EmbeddedChannel channel = hand.accept();
        read(hand, channel, RawPeer.preface());
        HandPlatform.written(channel);
        hand.reads(channel, false);
        // the question has arrived before the server stopped reading
        channel.config().setAutoRead(true);
        read(hand, channel, question(1));
        assertThat(HandPlatform.written(channel)).isEmpty();
        hand.reads(channel, true);
        hand.settle(channel);
        assertThat(HandPlatform.written(channel)).hasSizeGreaterThan(COMPONENTS * 200);
        channel.close();
        channel.releaseOutbound();
        hand.pass(channel, 2, TimeUnit.HOURS);
        assertThat(server.core().ledger().audit()).isEmpty();
        assertThat(hand.heldBytes()).isZero();
    }

    private static void read(HandPlatform hand, EmbeddedChannel channel, ByteBuf bytes) {
        byte[] all = ByteBufUtil.getBytes(bytes);
        hand.read(channel, all, 0, all.length);
    }

    /** The hash takes 9 bytes of an entry, and a server of 20 such methods sends 840 bytes once for a connection. */
    @Test
    void aHashTakesNineBytesOfAnEntry() {
        ByteBuf with = Unpooled.buffer();
        ByteBuf without = Unpooled.buffer();
        ByteBuf scratch = Unpooled.buffer();
        for (int number = 1; number <= 20; number++) {
            MethodDictionary.write(with, scratch, "orders", "findByCustomer", number, 1L << 60, 0x84000004);
            MethodDictionary.write(
                    without, scratch, "orders", "findByCustomer", number, MethodSchema.NO_HASH, 0x84000004);
        }
        assertThat(with.readableBytes() - without.readableBytes()).isEqualTo(20 * 9);
        assertThat(with.readableBytes()).isEqualTo(20 * 42);
    }
}
