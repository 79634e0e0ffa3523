package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * A server in a process of its own, under attack by one flood after the other, each as fast as a thread can send unless
 * it says otherwise. Meanwhile somebody else
 * calls at a fixed rate: goodput is the share of these calls that are answered right within 200 ms of when they were due.
 */
@Timeout(600)
class FloodTest {
    private static final int MILLIS = LongForm.of(500, 5000);
    private static final int SLOW_SENDERS = LongForm.of(300, 9_900);
    private static final int CALLS_PER_SECOND = 500;
    private static final long IN_TIME_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

    /** Heap and direct memory of the server together, and what a JVM needs beside them. */
    private static final long MOST_RESIDENT_BYTES = 384L << 20;

    /** The brief form runs beside other tests on the same processors, and looks for half a second only. */
    private static final double LEAST_KEPT = LongForm.ON ? 0.8 : 0.5;

    @TempDir
    Path folder;

    /** One flood, until told to stop. */
    @FunctionalInterface
    private interface Attack {
        void go(AtomicBoolean stop) throws Exception;
    }

    private int open;
    private int locked;
    private final AtomicInteger refused = new AtomicInteger();

    @Test
    void floodsAreContainedAndOthersKeepTheirGoodput() throws Exception {
        assumeTrue(Files.exists(Path.of("/proc/self/status")), "no /proc here to read a process's memory from");
        Certificates servers = new Certificates(folder, "servers");
        Certificates clients = new Certificates(folder, "clients");
        Certificates.Pair pair = servers.make("server", "server", "ip:127.0.0.1", "-1d", 30);
        try (JvmProcess server = JvmProcess.start(
                        List.of("-XX:TieredStopAtLevel=1", "-Xmx128m", "-XX:MaxDirectMemorySize=128m"),
                        Besieged.class,
                        pair.chain().toString(),
                        pair.key().toString(),
                        clients.authority.toString());
                Client client = Client.builder()
                        .interceptor(Tokens.signing(Besieged.NAME, Besieged.SECRET))
                        .build()) {
            locked = server.port();
            open = server.port();
            Besieged.Calls calls = client.create(Besieged.Calls.class, "127.0.0.1", open);
            goodput(calls, 1000);
            double alone = goodput(calls, MILLIS);
            LongForm.figure(4, "goodput without an attack: %.1f %% of %d calls/s", 100 * alone, CALLS_PER_SECOND);
            Map<String, Attack> attacks = new LinkedHashMap<>();
            attacks.put(SLOW_SENDERS + " senders of a byte a second", this::slowSenders);
            attacks.put("readers that never read", this::neverReading);
            attacks.put("requests that never end", this::unending);
            attacks.put("cancels", this::cancels);
            attacks.put("pings", stop -> repeat(stop, RawPeer.frame(Wire.PING, 0, Unpooled.EMPTY_BUFFER)));
            attacks.put("settings", stop -> repeat(stop, RawPeer.frame(Wire.SETTINGS, 0, Unpooled.EMPTY_BUFFER)));
            attacks.put("classic requests that stop before their end", this::classicUnending);
            attacks.put("classic readers that never read", this::classicNeverReading);
            attacks.put("random bytes", this::randomBytes);
            attacks.put("connections", this::connections);
            attacks.put("handshakes without a certificate", stop -> handshakes(stop, servers));
            attacks.put("calls with a bad token", this::badTokens);
            Map<String, Double> kept = new LinkedHashMap<>();
            for (Map.Entry<String, Attack> attack : attacks.entrySet()) {
                kept.put(attack.getKey(), under(attack.getValue(), calls));
                LongForm.figure(
                        4,
                        "%s: others' goodput %.1f %%, highest resident %d MB",
                        attack.getKey(),
                        100 * kept.get(attack.getKey()),
                        server.highestResidentBytes() >> 20);
            }
            assertThat(kept)
                    .allSatisfy(
                            (attack, share) -> assertThat(share).as(attack).isGreaterThanOrEqualTo(LEAST_KEPT * alone));
            assertThat(server.highestResidentBytes()).isLessThan(MOST_RESIDENT_BYTES);
            assertThat(refused).as("connections that the server has ended").hasPositiveValue();
        }
    }

    private double under(Attack attack, Besieged.Calls calls) throws Exception {
        AtomicBoolean stop = new AtomicBoolean();
        CompletableFuture<Void> over = new CompletableFuture<>();
        Thread attacker = new Thread(
                () -> {
                    try {
                        attack.go(stop);
                        over.complete(null);
                    } catch (Exception e) {
                        over.completeExceptionally(e);
                    }
                },
                "attacker");
        attacker.start();
        try {
            return goodput(calls, MILLIS);
        } finally {
            stop.set(true);
            over.get(30, TimeUnit.SECONDS);
        }
    }

    private static double goodput(Besieged.Calls calls, int millis) throws Exception {
        int count = CALLS_PER_SECOND * millis / 1000;
        AtomicInteger good = new AtomicInteger();
        long begin = System.nanoTime();
        List<CompletableFuture<?>> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            long due = begin + i * (TimeUnit.SECONDS.toNanos(1) / CALLS_PER_SECOND);
            for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
            String text = "call " + i;
            all.add(calls.hello(text).handle((reply, thrown) -> {
                if (text.equals(reply) && System.nanoTime() - due <= IN_TIME_NANOS) {
                    good.incrementAndGet();
                }
                return null;
            }));
        }
        CompletableFuture.allOf(all.toArray(new CompletableFuture<?>[0])).get(30, TimeUnit.SECONDS);
        return (double) good.get() / count;
    }

    // ---- the floods

    private SocketChannel connect(int port, int address) throws IOException {
        SocketChannel channel = SocketChannel.open();
        // no port is left waiting for its last packet
        channel.socket().setSoLinger(true, 0);
        channel.bind(new InetSocketAddress(InetAddress.getByAddress(new byte[] {127, 0, 0, (byte) (2 + address)}), 0));
        channel.connect(new InetSocketAddress("127.0.0.1", port));
        return channel;
    }

    private static ByteBuffer bytes(ByteBuf buffer) {
        return ByteBuffer.wrap(ByteBufUtil.getBytes(buffer));
    }

    private static void closeAll(List<SocketChannel> all) throws IOException {
        for (SocketChannel one : all) {
            one.close();
        }
    }

    /** A byte a second on each of many connections; one that has been ended is made anew. */
    private void slowSenders(AtomicBoolean stop) throws IOException {
        byte[] request = ByteBufUtil.getBytes(
                RawPeer.preface().writeBytes(RawPeer.request(1 << 16, "besieged", "hello", "x".repeat(60_000))));
        SocketChannel[] all = new SocketChannel[SLOW_SENDERS];
        int[] sent = new int[SLOW_SENDERS];
        try {
            while (!stop.get()) {
                for (int i = 0; i < all.length && !stop.get(); i++) {
                    try {
                        if (all[i] == null) {
                            all[i] = connect(open, i / 1900);
                            sent[i] = 0;
                        }
                        all[i].write(ByteBuffer.wrap(request, sent[i]++, 1));
                    } catch (IOException ended) {
                        refused.incrementAndGet();
                        if (all[i] != null) {
                            all[i].close();
                            all[i] = null;
                        }
                    }
                }
                long next = System.nanoTime() + TimeUnit.SECONDS.toNanos(1);
                while (!stop.get() && next - System.nanoTime() > 0) {
                    LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
                }
            }
        } finally {
            closeAll(java.util.Arrays.stream(all)
                    .filter(java.util.Objects::nonNull)
                    .toList());
        }
    }

    /** Asks for replies of 128 KiB on a few connections, 1000 a second, and takes none; a connection that has been ended is made anew. */
    private void neverReading(AtomicBoolean stop) throws IOException {
        ByteBuf number = Unpooled.buffer().writeByte(1 << 3);
        Varint.write(number, 2 << 16);
        ByteBuf body = RawPeer.prelude("besieged", "much").writeBytes(number);
        SocketChannel[] all = new SocketChannel[20];
        try {
            for (int round = 0; !stop.get(); round++) {
                ByteBuffer request = bytes(RawPeer.frame(Wire.REQUEST | Wire.NAMED, 1 << 16 | round % 4000, body));
                for (int i = 0; i < all.length; i++) {
                    try {
                        if (all[i] == null) {
                            all[i] = connect(open, i % 5);
                            all[i].write(bytes(RawPeer.preface()));
                            all[i].configureBlocking(false);
                        }
                        all[i].write(request.rewind());
                    } catch (IOException ended) {
                        refused.incrementAndGet();
                        if (all[i] != null) {
                            all[i].close();
                            all[i] = null;
                        }
                    }
                }
                long next = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(20);
                for (long left = next - System.nanoTime(); !stop.get() && left > 0; left = next - System.nanoTime()) {
                    LockSupport.parkNanos(left);
                }
            }
        } finally {
            closeAll(java.util.Arrays.stream(all)
                    .filter(java.util.Objects::nonNull)
                    .toList());
        }
    }

    /** Sends on connection after connection until the server ends it. */
    private void untilEnded(AtomicBoolean stop, java.util.function.IntFunction<ByteBuffer> next) throws IOException {
        while (!stop.get()) {
            try (SocketChannel one = connect(open, 1)) {
                one.write(bytes(RawPeer.preface()));
                ByteBuffer thrownAway = ByteBuffer.allocate(1 << 16);
                for (int i = 0; !stop.get(); i++) {
                    one.configureBlocking(true);
                    one.write(next.apply(i));
                    one.configureBlocking(false);
                    if (one.read(thrownAway.clear()) < 0) {
                        break;
                    }
                }
                refused.incrementAndGet();
            } catch (IOException ended) {
                refused.incrementAndGet();
            }
        }
    }

    private void repeat(AtomicBoolean stop, ByteBuf frame) throws IOException {
        ByteBuf many = Unpooled.buffer();
        for (int i = 0; i < 50; i++) {
            many.writeBytes(frame.duplicate());
        }
        byte[] all = ByteBufUtil.getBytes(many);
        untilEnded(stop, i -> ByteBuffer.wrap(all));
    }

    private void unending(AtomicBoolean stop) throws IOException {
        byte[] first = ByteBufUtil.getBytes(
                RawPeer.frame(Wire.REQUEST | Wire.NAMED | Wire.MORE, 1 << 16, RawPeer.prelude("besieged", "hello")));
        byte[] part = ByteBufUtil.getBytes(
                RawPeer.frame(Wire.PART | Wire.MORE, 1 << 16, Unpooled.wrappedBuffer(new byte[60_000])));
        untilEnded(stop, i -> ByteBuffer.wrap(i == 0 ? first : part));
    }

    /** A hundred frames of 4 MiB that lack their last byte. */
    private void classicUnending(AtomicBoolean stop) throws IOException {
        byte[] begin = ByteBufUtil.getBytes(
                Unpooled.buffer().writeInt(4 << 20).writeShort(0x0801).writeZero((4 << 20) - 3));
        AtomicInteger made = new AtomicInteger();
        onMany(stop, 100, () -> made.incrementAndGet() <= 100 ? ByteBuffer.wrap(begin) : ByteBuffer.allocate(0));
    }

    /** As {@link #neverReading}. */
    private void classicNeverReading(AtomicBoolean stop) throws IOException {
        ByteBuf number = Unpooled.buffer().writeByte(1 << 3);
        Varint.write(number, 2 << 16);
        java.util.concurrent.atomic.AtomicLong id = new java.util.concurrent.atomic.AtomicLong();
        onMany(
                stop,
                20,
                () -> bytes(ClassicWire.request(
                        id.incrementAndGet(),
                        "besieged",
                        "much",
                        List.of("int"),
                        List.of(ByteBufUtil.getBytes(number)))));
    }

    /**
     * Some bytes on each of many connections, as far as they are taken, and the next ones when they have been, at most 50 times a second; a
     * connection that has been ended is made anew.
     */
    private void onMany(AtomicBoolean stop, int count, java.util.function.Supplier<ByteBuffer> next)
            throws IOException {
        SocketChannel[] all = new SocketChannel[count];
        ByteBuffer[] rest = new ByteBuffer[count];
        try {
            while (!stop.get()) {
                for (int i = 0; i < count; i++) {
                    try {
                        if (all[i] == null) {
                            all[i] = connect(open, i % 5);
                            all[i].configureBlocking(false);
                            rest[i] = next.get();
                        } else if (!rest[i].hasRemaining()) {
                            rest[i] = next.get();
                        }
                        all[i].write(rest[i]);
                    } catch (IOException ended) {
                        refused.incrementAndGet();
                        if (all[i] != null) {
                            all[i].close();
                            all[i] = null;
                        }
                    }
                }
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(20));
            }
        } finally {
            closeAll(java.util.Arrays.stream(all)
                    .filter(java.util.Objects::nonNull)
                    .toList());
        }
    }

    /** The rapid reset: each cancel makes room for the next request. */
    private void cancels(AtomicBoolean stop) throws IOException {
        untilEnded(stop, i -> {
            ByteBuf both = Unpooled.buffer();
            for (int k = 0; k < 16; k++) {
                int id = (1 + i) << 16 | k;
                both.writeBytes(RawPeer.request(id, "besieged", "hello", "x"));
                both.writeBytes(RawPeer.frame(Wire.CANCEL, id, Unpooled.EMPTY_BUFFER));
            }
            return bytes(both);
        });
    }

    private void randomBytes(AtomicBoolean stop) throws IOException {
        Random random = new Random(4);
        untilEnded(stop, i -> {
            byte[] some = new byte[1024];
            random.nextBytes(some);
            return ByteBuffer.wrap(some);
        });
    }

    private void connections(AtomicBoolean stop) throws IOException {
        List<SocketChannel> all = new ArrayList<>();
        try {
            // more than one address may have, again and again
            while (!stop.get()) {
                all.add(connect(open, 3));
                if (all.size() >= 2500) {
                    closeAll(all);
                    all.clear();
                }
            }
        } finally {
            closeAll(all);
        }
    }

    private void handshakes(AtomicBoolean stop, Certificates servers) {
        Tls none = Tls.client().trusting(servers.authority);
        while (!stop.get()) {
            try (Client client = Client.builder()
                    .eventLoops(1)
                    .connectTimeout(Duration.ofSeconds(5))
                    .tls(none)
                    .build()) {
                client.create(Besieged.Calls.class, "127.0.0.1", locked)
                        .hello("x")
                        .join();
                throw new AssertionError("let in without a certificate");
            } catch (java.util.concurrent.CompletionException expected) {
                refused.incrementAndGet();
            }
        }
    }

    private void badTokens(AtomicBoolean stop) {
        byte[] secret = Besieged.SECRET.clone();
        secret[0]++;
        try (Client client = Client.builder()
                .interceptor(Tokens.signing(Besieged.NAME, secret))
                .build()) {
            Besieged.Calls calls = client.create(Besieged.Calls.class, "127.0.0.1", open);
            while (!stop.get()) {
                try {
                    calls.hello("x").join();
                    throw new AssertionError("let in with a bad token");
                } catch (java.util.concurrent.CompletionException expected) {
                    refused.incrementAndGet();
                }
            }
        }
    }
}
