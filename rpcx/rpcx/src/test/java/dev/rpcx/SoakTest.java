package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.ByteBufAllocatorMetricProvider;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Exchanges messages of all sizes for a while. Each caller gets its own reply, no reply is lost or comes twice, and the
 * use of memory does not grow.
 */
@Timeout(1200)
class SoakTest {
    private static final int CALLERS = 16;
    private static final int SECONDS = LongForm.of(3, 120);

    /** Sizes range from 0 B to 1 MB, and most of them are small. */
    private static final int[] MAX_BYTES = {16, 16, 16, 200, 200, 2000, 2000, 20_000, 100_000, 1_000_000};

    @RPCXServer("soak")
    static final class Mirror {
        final AtomicLong executed = new AtomicLong();

        @Method
        byte[] virtual(long number, byte[] bytes) {
            executed.incrementAndGet();
            return changed(number, bytes);
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        byte[] inline(long number, byte[] bytes) {
            executed.incrementAndGet();
            return changed(number, bytes);
        }
    }

    @RPCXClient(remoteServerName = "soak")
    interface MirrorClient {
        byte[] virtual(long number, byte[] bytes);

        byte[] inline(long number, byte[] bytes);

        @Method("virtual")
        CompletableFuture<byte[]> later(long number, byte[] bytes);
    }

    /** Returns a reply that belongs to this call and to no other. */
    private static byte[] changed(long number, byte[] bytes) {
        byte[] reply = Arrays.copyOf(bytes, bytes.length + Long.BYTES);
        for (int i = 0; i < Long.BYTES; i++) {
            reply[bytes.length + i] = (byte) (number >>> 8 * i);
        }
        return reply;
    }

    private final AtomicLong numbers = new AtomicLong();
    private final AtomicLong replies = new AtomicLong();
    private final AtomicLong carried = new AtomicLong();

    @Test
    void everyReplyIsItsCallersOwnAndMemoryStaysAsItWas() throws Exception {
        Mirror mirror = new Mirror();
        try (Server server = new Server(0, RegistryServer.registry(mirror)).start();
                Client client = Client.builder().connections(2).build()) {
            MirrorClient calls = client.create(MirrorClient.class, "127.0.0.1", server.port());
            // pools fill first
            load(calls, Duration.ofMillis(SECONDS * 500L));
            long heap = heapBytes();
            long direct = directBytes();
            load(calls, Duration.ofMillis(SECONDS * 500L));
            long heapLater = heapBytes();
            long directLater = directBytes();
            LongForm.figure(
                    1,
                    "%d s, %d callers, 0 B to 1 MB: %d calls, %d executed, %d MB each way; heap %.1f → %.1f MB, direct %.1f → %.1f MB; replies lost, doubled, misled: 0",
                    SECONDS,
                    CALLERS,
                    replies.get(),
                    mirror.executed.get(),
                    carried.get() / 1_000_000,
                    heap / 1e6,
                    heapLater / 1e6,
                    direct / 1e6,
                    directLater / 1e6);
            assertThat(replies.get()).isEqualTo(numbers.get());
            assertThat(mirror.executed.get()).isEqualTo(numbers.get());
            assertThat(heapLater - heap).isLessThan(16L << 20);
            assertThat(directLater - direct).isLessThan(48L << 20);
        }
    }

    private void load(MirrorClient calls, Duration time) throws Exception {
        long end = System.nanoTime() + time.toNanos();
        List<CompletableFuture<Void>> callers = new ArrayList<>();
        for (int i = 0; i < CALLERS; i++) {
            int caller = i;
            CompletableFuture<Void> over = new CompletableFuture<>();
            callers.add(over);
            new Thread(() -> {
                        try {
                            call(calls, caller, end);
                            over.complete(null);
                        } catch (Throwable e) {
                            over.completeExceptionally(e);
                        }
                    })
                    .start();
        }
        CompletableFuture.allOf(callers.toArray(new CompletableFuture<?>[0]))
                .get(time.toSeconds() + 60, TimeUnit.SECONDS);
    }

    private void call(MirrorClient calls, int caller, long end) {
        SplittableRandom random = new SplittableRandom(caller);
        while (System.nanoTime() - end < 0) {
            long number = numbers.getAndIncrement();
            byte[] bytes = new byte[random.nextInt(MAX_BYTES[random.nextInt(MAX_BYTES.length)])];
            Arrays.fill(bytes, (byte) number);
            byte[] reply = switch (caller % 3) {
                case 0 -> calls.virtual(number, bytes);
                case 1 -> calls.inline(number, bytes);
                default -> calls.later(number, bytes).join();
            };
            if (!Arrays.equals(reply, changed(number, bytes))) {
                throw new AssertionError("call " + number + " got another's reply");
            }
            replies.incrementAndGet();
            carried.addAndGet(bytes.length);
        }
    }

    private static long heapBytes() {
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 3; i++) {
            System.gc();
            Runtime runtime = Runtime.getRuntime();
            least = Math.min(least, runtime.totalMemory() - runtime.freeMemory());
        }
        return least;
    }

    private static long directBytes() {
        return ((ByteBufAllocatorMetricProvider) ByteBufAllocator.DEFAULT)
                .metric()
                .usedDirectMemory();
    }
}
