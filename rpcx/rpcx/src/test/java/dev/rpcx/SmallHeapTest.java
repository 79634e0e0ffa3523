package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests that calls do not fill a small heap with what they hold without a charge, however many calls there are. A
 * server with the standard settings and a heap of 256 MB or 64 MB gets as many calls as it takes. Each call stays just
 * below the limits from which bytes are counted. The server's process would end at its first OutOfMemoryError.
 */
@Timeout(300)
class SmallHeapTest {
    private static final int ADDRESSES = 6;
    private static final int TEXT_BYTES = 3200;
    private static final int TINIES = 200;
    private static final int PART_BYTES = 16_000;
    private static final int METADATA_BYTES = 1900;

    /** A server without peers has so many bytes, for classes, codecs and whatever else it needs. */
    private static final long BASE_BYTES = 12 << 20;

    private static JvmProcess server(int heapMegabytes) throws Exception {
        return JvmProcess.start(
                List.of(
                        "-XX:TieredStopAtLevel=1",
                        "-XX:+UseG1GC",
                        "-Xmx" + heapMegabytes + "m",
                        "-XX:+ExitOnOutOfMemoryError"),
                SmallHeap.class);
    }

    /** Returns a call of 4 KiB, with metadata of 4 KiB in memory, that becomes 16 KiB of objects. */
    private static ByteBuf request(int id, String method) {
        ByteBuf metadata = RawPeer.text("key");
        metadata.writeByte(2 << 3 | 2);
        Varint.write(metadata, METADATA_BYTES);
        metadata.writeBytes("v".repeat(METADATA_BYTES).getBytes(StandardCharsets.US_ASCII));
        ByteBuf entry = Unpooled.buffer().writeByte(1 << 3 | 2);
        Varint.write(entry, metadata.readableBytes());
        entry.writeBytes(metadata);
        ByteBuf payload = RawPeer.prelude("small", method);
        Varint.write(payload, TimeUnit.MINUTES.toMicros(5));
        Varint.write(payload, entry.readableBytes());
        payload.writeBytes(entry).writeBytes(RawPeer.text("x".repeat(TEXT_BYTES)));
        for (int i = 0; i < TINIES; i++) {
            payload.writeByte(2 << 3 | 2).writeByte(2).writeByte(1 << 3).writeByte(1);
        }
        return RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.TIME | Wire.METADATA, id, payload);
    }

    /** Returns the number of running handlers, the number of places, and the bytes of the heap. */
    private static long[] state(JvmProcess server) throws Exception {
        return Arrays.stream(server.ask("state").split(" "))
                .mapToLong(Long::parseLong)
                .toArray();
    }

    /** Sends calls of each kind from some addresses until the server takes no more. */
    private static void crowd(JvmProcess server, int port, long heapMegabytes, int calls, String... methods)
            throws Exception {
        List<RawPeer> peers = new ArrayList<>();
        try {
            for (String method : methods) {
                for (int address = 1; address <= ADDRESSES; address++) {
                    RawPeer peer = new RawPeer(port, "127.0.0." + (1 + address));
                    peers.add(peer);
                    peer.send(RawPeer.preface());
                    for (int slot = 0; slot < calls; slot++) {
                        peer.send(request(1 << 16 | slot, method));
                    }
                }
            }
            // when each connection has answered a PING, the server has looked at all that was sent before
            for (RawPeer peer : peers) {
                peer.send(RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER));
                peer.readPreface();
                while (peer.readAnswer().type() != Wire.PONG) {}
            }
            long[] held = state(server);
            System.out.printf(
                    "%s: %d handlers, %d places, heap %d MB%n", List.of(methods), held[0], held[1], held[2] >> 20);
            // what is not charged takes less than an eighth of the heap, and what is charged here takes less than a
            // third
            assertThat(held[2]).isLessThan((heapMegabytes << 20) / 2 + BASE_BYTES);
            try (RawPeer other = new RawPeer(port)) {
                other.send(RawPeer.preface());
                other.send(RawPeer.request(1 << 16, "small", "hello", "there"));
                other.readPreface();
                assertThat(other.readAnswer().type())
                        .as("another caller is answered or refused")
                        .isIn(Wire.REPLY, Wire.ERROR);
            }
        } finally {
            for (RawPeer peer : peers) {
                peer.close();
            }
        }
        await().atMost(Duration.ofMinutes(2)).untilAsserted(() -> {
            assertThat(server.ask("audit")).isEmpty();
            assertThat(state(server)[0]).isZero();
        });
    }

    @Test
    void callsBelowTheLimitsFromWhichBytesAreCountedDoNotFillASmallHeap() throws Exception {
        try (JvmProcess server = server(256)) {
            int port = server.port();
            for (String method : List.of("block", "stream", "later")) {
                crowd(server, port, 256, 2000, method);
            }
            crowd(server, port, 256, 1000, "block", "stream", "later");
        }
    }

    @Test
    void norDoTheyFillATinyOne() throws Exception {
        try (JvmProcess server = server(64)) {
            crowd(server, server.port(), 64, 500, "block", "stream", "later");
        }
    }

    /** Returns a request in parts, with the last part only if the request is to be whole. */
    private static ByteBuf inParts(int id, String method, int textBytes, boolean isWhole) {
        ByteBuf text = RawPeer.text("x".repeat(textBytes));
        ByteBuf payload = RawPeer.prelude("small", method);
        Varint.write(payload, TimeUnit.MINUTES.toMicros(5));
        ByteBuf all = RawPeer.frame(
                Wire.REQUEST | Wire.NAMED | Wire.TIME | Wire.MORE, id, payload.writeBytes(text, PART_BYTES));
        while (text.isReadable()) {
            int bytes = Math.min(PART_BYTES, text.readableBytes());
            boolean isLast = isWhole && bytes == text.readableBytes();
            all.writeBytes(RawPeer.frame(isLast ? Wire.PART : Wire.PART | Wire.MORE, id, text.readSlice(bytes)));
        }
        return all;
    }

    /** G1 gives whole regions of 1 MiB to each of these arrays: buffers that have grown, and texts of requests. */
    @Test
    void arraysThatTakeWholeRegionsDoNotFillASmallHeap() throws Exception {
        try (JvmProcess server = server(256)) {
            int port = server.port();
            List<RawPeer> peers = new ArrayList<>();
            for (int address = 1; address <= 24; address++) {
                RawPeer peer = new RawPeer(port, "127.0.0." + (1 + address));
                peers.add(peer);
                peer.send(RawPeer.preface());
                for (int slot = 0; slot < 6; slot++) {
                    peer.send(inParts(1 << 16 | slot, "later", slot % 2 == 0 ? 524_283 : 300_000, slot % 2 == 0));
                }
            }
            try {
                for (RawPeer peer : peers) {
                    peer.send(RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER));
                    peer.readPreface();
                    while (peer.readAnswer().type() != Wire.PONG) {}
                }
                // an eighth of the heap is for bytes of requests, and another eighth is for the objects that they are
                // read into
                assertThat(state(server)[2]).isBetween(32L << 20, (64L << 20) + BASE_BYTES);
            } finally {
                for (RawPeer peer : peers) {
                    peer.close();
                }
            }
            await().atMost(Duration.ofMinutes(2))
                    .untilAsserted(() -> assertThat(server.ask("audit")).isEmpty());
        }
    }

    @RPCXClient(remoteServerName = "small")
    interface Calls {
        @Method
        CompletableFuture<String> hello(String name);
    }

    @Test
    void aThousandCallsAtOnceOfOneConnectionAreServedOnATinyHeap() throws Exception {
        String text = "x".repeat(1000);
        try (JvmProcess server = server(64);
                Client client = Client.builder().build()) {
            Calls calls = client.create(Calls.class, "127.0.0.1", server.port());
            for (int round = 0; round < 20; round++) {
                List<CompletableFuture<String>> replies = new ArrayList<>();
                for (int i = 0; i < 1024; i++) {
                    replies.add(calls.hello(text));
                }
                for (CompletableFuture<String> reply : replies) {
                    assertThat(reply.get()).isEqualTo(text);
                }
            }
        }
    }
}
