package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.rpcx.internal.Varint;
import dev.rpcx.internal.wire.Settings;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests that there is a bound on what strangers can make a server hold, and on what a server can make a client hold.
 * The bound is the same for each garbage collector. With G1, an array of more than half a region takes whole regions,
 * so the peers make arrays that are just larger than that. Each process ends at its first OutOfMemoryError.
 */
@Timeout(300)
class LargeArraysTest {
    private static final int HEAP_MEGABYTES = 256;

    /** This many addresses do each of the things below. */
    private static final int ADDRESSES = 12;

    private static final int CALLS = 20;

    /** Buffers for this many bytes have 512 KiB, which with a header is more than half a region. */
    private static final int BEGUN_BYTES = 300_000;

    /** An array of this many bytes has a region to itself, since with its header it has more than half a region. */
    private static final int ARRAY_BYTES = 524_283;

    private static final int LARGE_BYTES = 530_000;

    private static final int PART_BYTES = 16_000;

    /** The limit is what docs/security.md says that strangers can fill, and what a server has without them. */
    private static final long MAX_BYTES = (long) HEAP_MEGABYTES * (1 << 20) * 72 / 100 + (12 << 20);

    private final List<RawPeer> peers = new ArrayList<>();

    private static List<String> options(String collector, int heapMegabytes) {
        return List.of(
                "-XX:TieredStopAtLevel=1",
                "-XX:+Use" + collector,
                "-Xmx" + heapMegabytes + "m",
                "-XX:MaxDirectMemorySize=96m",
                "-XX:+ExitOnOutOfMemoryError");
    }

    private static int id(int slot) {
        return 1 << 16 | slot;
    }

    private static ByteBuf call(int slot, int flags, String method, ByteBuf body) {
        return RawPeer.frame(
                Wire.REQUEST | Wire.NAMED | flags,
                id(slot),
                RawPeer.prelude("small", method).writeBytes(body));
    }

    private static ByteBuf number(int value) {
        ByteBuf number = Unpooled.buffer().writeByte(1 << 3);
        Varint.write(number, value);
        return number;
    }

    private static ByteBuf credit(int slot, int items) {
        ByteBuf number = Unpooled.buffer();
        Varint.write(number, items);
        return RawPeer.frame(Wire.CREDIT, id(slot), number);
    }

    /**
     * Returns the parts of a message that has begun. If the message does not end, its last part says that more follow.
     */
    private static ByteBuf parts(int slot, ByteBuf body, boolean ends) {
        ByteBuf all = Unpooled.buffer();
        while (body.readableBytes() > PART_BYTES) {
            all.writeBytes(RawPeer.frame(Wire.PART | Wire.MORE, id(slot), body.readSlice(PART_BYTES)));
        }
        return all.writeBytes(RawPeer.frame(ends ? Wire.PART : Wire.PART | Wire.MORE, id(slot), body));
    }

    private static ByteBuf zeros(int bytes) {
        return Unpooled.wrappedBuffer(new byte[bytes]);
    }

    private static ByteBuf begunRequest(int slot) {
        return Unpooled.wrappedBuffer(
                call(slot, Wire.MORE, "hold", Unpooled.EMPTY_BUFFER), parts(slot, zeros(BEGUN_BYTES), false));
    }

    private static ByteBuf heldArray(int slot) {
        return Unpooled.wrappedBuffer(
                call(slot, Wire.MORE, "hold", Unpooled.EMPTY_BUFFER),
                parts(slot, RawPeer.text("x".repeat(ARRAY_BYTES)), true));
    }

    private static ByteBuf unreadReply(int slot) {
        return call(slot, 0, "much", number(LARGE_BYTES));
    }

    private static ByteBuf unreadItems(int slot) {
        return Unpooled.wrappedBuffer(call(slot, 0, "endless", number(LARGE_BYTES)), credit(slot, 100));
    }

    private RawPeer peer(int port, int address, boolean reads) throws IOException {
        RawPeer peer = new RawPeer(port, "127.0.0." + (2 + address), reads ? 0 : 2048);
        peers.add(peer);
        peer.send(RawPeer.preface());
        return peer;
    }

    private interface Calls {
        ByteBuf of(int slot);
    }

    /** Makes {@code CALLS} calls from each address, which reads the answers or does not. */
    private void crowd(int port, int first, boolean reads, Calls calls) throws IOException {
        for (int address = first; address < first + ADDRESSES; address++) {
            RawPeer peer = peer(port, address, reads);
            for (int slot = 0; slot < CALLS; slot++) {
                peer.send(calls.of(slot));
            }
            if (reads) {
                waitForAnswers(peer);
            }
        }
    }

    /** When this method returns, the server has read all that was sent. */
    private static void waitForAnswers(RawPeer peer) throws IOException {
        peer.send(RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER));
        peer.readPreface();
        while (peer.readAnswer().type() != Wire.PONG) {}
    }

    /** Begins the streams first, since items may not be sent before there is credit for them. */
    private void crowdWithItems(int port, int first) throws IOException {
        for (int address = first; address < first + ADDRESSES; address++) {
            RawPeer peer = peer(port, address, true);
            for (int slot = 0; slot < CALLS; slot++) {
                peer.send(call(slot, 0, "take", Unpooled.EMPTY_BUFFER));
            }
            peer.readPreface();
            for (int ready = 0; ready < CALLS; ) {
                int type = peer.readAnswer().type();
                ready += type == Wire.CREDIT || type == Wire.ERROR ? 1 : 0;
            }
            for (int slot = 0; slot < CALLS; slot++) {
                peer.send(Unpooled.wrappedBuffer(
                        RawPeer.frame(Wire.ITEM | Wire.MORE, id(slot), Unpooled.EMPTY_BUFFER),
                        parts(slot, zeros(BEGUN_BYTES), false)));
            }
            peer.send(RawPeer.frame(Wire.PING, 7, Unpooled.EMPTY_BUFFER));
            while (peer.readAnswer().type() != Wire.PONG) {}
        }
    }

    private static long heapBytes(JvmProcess server) throws Exception {
        return Arrays.stream(server.ask("state").split(" "))
                .mapToLong(Long::parseLong)
                .toArray()[2];
    }

    @ParameterizedTest
    @ValueSource(strings = {"G1GC", "SerialGC"})
    void whatStrangersCanMakeAServerHoldHasItsBoundWhateverCollectsTheHeap(String collector) throws Exception {
        try (JvmProcess server = JvmProcess.start(options(collector, HEAP_MEGABYTES), SmallHeap.class)) {
            int port = server.port();
            long before = heapBytes(server);
            crowd(port, 0, true, LargeArraysTest::heldArray);
            long held = heapBytes(server);
            crowd(port, ADDRESSES, true, LargeArraysTest::begunRequest);
            long begun = heapBytes(server);
            crowdWithItems(port, 0);
            long items = heapBytes(server);
            crowd(port, 0, false, LargeArraysTest::unreadReply);
            crowd(port, ADDRESSES, false, LargeArraysTest::unreadItems);
            // a peer that does not read cannot find out whether the server has read all, so this waits until the heap
            // stands still
            long[] last = {0};
            await().atMost(Duration.ofSeconds(30))
                    .pollInterval(Duration.ofMillis(300))
                    .until(() -> {
                        long now = heapBytes(server);
                        boolean stands = Math.abs(now - last[0]) < 1 << 20;
                        last[0] = now;
                        return stands;
                    });
            System.out.printf(
                    "%s: heap %d MB, with arrays held %d, requests begun %d, items begun %d, replies and items unread %d%n",
                    collector, before >> 20, held >> 20, begun >> 20, items >> 20, last[0] >> 20);
            assertThat(last[0]).isLessThan(MAX_BYTES);
            try (RawPeer other = new RawPeer(port)) {
                other.send(RawPeer.preface());
                other.send(RawPeer.request(1 << 16, "small", "hello", "there"));
                other.readPreface();
                assertThat(other.readAnswer().type())
                        .as("another caller is answered or refused")
                        .isIn(Wire.REPLY, Wire.ERROR);
            }
            for (RawPeer peer : peers) {
                peer.close();
            }
            await().atMost(Duration.ofMinutes(2))
                    .untilAsserted(() -> assertThat(server.ask("audit")).isEmpty());
        }
    }

    /** The server begins replies that do not end. */
    @ParameterizedTest
    @ValueSource(strings = {"G1GC", "SerialGC"})
    void whatAServerCanMakeASmallClientHoldHasItsBoundAndEachCallEnds(String collector) throws Exception {
        Settings settings = new Settings(Wire.MAX_MESSAGE_BYTES, 1000, 10_000_000);
        for (int bytes : new int[] {BEGUN_BYTES, LARGE_BYTES, 2 * LARGE_BYTES}) {
            try (FakeServer server = new FakeServer(settings, Unpooled.EMPTY_BUFFER, (request, peer) -> {
                        peer.send(Wire.REPLY | Wire.MORE, request.id(), zeros(PART_BYTES));
                        for (int sent = PART_BYTES; sent < bytes; sent += PART_BYTES) {
                            peer.send(Wire.PART | Wire.MORE, request.id(), zeros(PART_BYTES));
                        }
                    });
                    JvmProcess client = JvmProcess.start(options(collector, 64), SmallClient.class)) {
                assertThat(client.greeting()).isEqualTo("ready");
                String ends = client.ask("call " + server.endpoint().port() + " 200");
                assertThat(ends.split(" "))
                        .as("replies of %d bytes", bytes)
                        .hasSize(200)
                        .containsOnly("OVERLOADED", "DEADLINE_EXCEEDED");
            }
        }
    }

    /**
     * The program of the client takes all memory while replies arrive. No loop ends over that, and no call waits
     * forever.
     */
    @Test
    void eachCallOfAClientEndsThatHasNoMemoryLeft() throws Exception {
        Settings settings = new Settings(Wire.MAX_MESSAGE_BYTES, 1000, 10_000_000);
        int begun = 60;
        AtomicBoolean begins = new AtomicBoolean();
        try (FakeServer server = new FakeServer(settings, Unpooled.EMPTY_BUFFER, (request, peer) -> {
                    if (!begins.get()) {
                        peer.send(Wire.REPLY, request.id(), RawPeer.text("x"));
                        return;
                    }
                    peer.send(Wire.REPLY | Wire.MORE, request.id(), zeros(PART_BYTES));
                    for (int sent = PART_BYTES; sent < LARGE_BYTES; sent += PART_BYTES) {
                        peer.send(Wire.PART | Wire.MORE, request.id(), zeros(PART_BYTES));
                    }
                });
                JvmProcess client = JvmProcess.start(
                        List.of("-XX:TieredStopAtLevel=1", "-XX:+UseG1GC", "-Xmx64m"), SmallClient.class)) {
            assertThat(client.greeting()).isEqualTo("ready");
            int port = server.endpoint().port();
            assertThat(client.ask("call " + port + " 1")).isEqualTo("OK");
            begins.set(true);
            assertThat(client.ask("fill " + port + " " + begun).split(" "))
                    .hasSize(begun)
                    .doesNotContain("NEVER");
            // this holds whether or not the connection has ended before all replies were read
            begins.set(false);
            // the first call may still meet the connection that has ended
            await().atMost(Duration.ofSeconds(30))
                    .untilAsserted(
                            () -> assertThat(client.ask("call " + port + " 1")).isEqualTo("OK"));
        }
    }
}
