package dev.rpcx.codec;

import com.sun.management.HotSpotDiagnosticMXBean;
import io.netty.buffer.ByteBuf;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * What an array takes of the heap, and what length a buffer on the heap should grow to. Public only because whoever
 * charges for buffers stands in another package.
 *
 * <p>A collector that divides the heap into regions (G1, the JVM's standard) gives whole regions to an array of more
 * than half a region, which is 512 KiB on heaps up to 2 GiB: an array of 512 KiB takes 1 MiB there, and one of 1 MiB
 * takes 2 MiB, since each has a header. None crosses from one region to the next, so two of 400 kB take 1 MiB. Whatever
 * limits the memory that a peer can fill has to count that. Source:
 * <a href="https://docs.oracle.com/en/java/javase/25/gctuning/garbage-first-g1-garbage-collector1.html">HotSpot Garbage
 * Collection Tuning Guide, Humongous Objects</a>.
 */
public final class HeapArray {
    /** The most that an array has in front of its elements, with what aligns its end. */
    private static final int HEADER_BYTES = 24;

    /** No more than a sixteenth of a region is lost to what is smaller: that needs no look at the collector. */
    static final int ALWAYS_EXACT_BYTES = 64 * 1024;

    /** Beyond this buffers grow to powers of two less a header, which fit regions. */
    private static final int BUFFER_BYTES = 32 * 1024;

    /** Beyond this a buffer no longer doubles. Netty's buffers have the same. */
    private static final int BUFFER_STEP_BYTES = 4 * 1024 * 1024;

    private static final AtomicBoolean PREPARED = new AtomicBoolean();

    private HeapArray() {}

    /**
     * Has another thread find out about the heap, once: it takes 35 to 350 ms, for which no event loop should stand
     * still at the first large array.
     */
    public static void prepare() {
        if (!PREPARED.compareAndSet(false, true)) {
            return;
        }
        try {
            Thread thread = new Thread(() -> taken(ALWAYS_EXACT_BYTES + 1L), "rpcx-heap");
            thread.setDaemon(true);
            thread.setContextClassLoader(null);
            thread.start();
        } catch (OutOfMemoryError noThread) {
            // whoever asks first finds out
        }
    }

    /**
     * What an array takes of the heap.
     *
     * @param bytes of its elements, from 0
     * @return at least {@code bytes}, and at most twice as much
     */
    public static long taken(long bytes) {
        return bytes <= ALWAYS_EXACT_BYTES ? bytes : taken(bytes, Regions.BYTES);
    }

    /** @param regionBytes of one region; 0 where the heap has none */
    static long taken(long bytes, long regionBytes) {
        long all = bytes + HEADER_BYTES;
        if (regionBytes == 0 || bytes <= ALWAYS_EXACT_BYTES) {
            return bytes;
        }
        if (all <= regionBytes / 2) {
            // its part of a region that holds as many of its kind as fit
            return Math.max(bytes, regionBytes / (regionBytes / all));
        }
        return (all + regionBytes - 1) / regionBytes * regionBytes;
    }

    /** What a buffer takes of the heap. */
    public static long taken(ByteBuf buffer) {
        return taken(buffer.capacity());
    }

    /** How much more of the heap a buffer takes once so many bytes have been written behind what it holds. */
    public static long growth(ByteBuf buffer, int bytes) {
        int needed = buffer.writerIndex() + bytes;
        return needed <= buffer.capacity() ? 0 : taken(capacity(buffer, needed)) - taken(buffer);
    }

    /** Makes room for so many bytes behind what the buffer holds. {@link #growth} says beforehand what it costs. */
    public static void grow(ByteBuf buffer, int bytes) {
        int needed = buffer.writerIndex() + bytes;
        if (needed > buffer.capacity()) {
            buffer.capacity(capacity(buffer, needed));
        }
    }

    private static int capacity(ByteBuf buffer, int needed) {
        int max = buffer.maxCapacity();
        if (needed <= BUFFER_BYTES || needed > max) {
            // a buffer that cannot grow so far says so itself
            return buffer.alloc().calculateNewCapacity(needed, max);
        }
        long all = (long) needed + HEADER_BYTES;
        long rounded = all <= BUFFER_STEP_BYTES
                ? Long.highestOneBit(all - 1) << 1
                : (all + BUFFER_STEP_BYTES - 1) / BUFFER_STEP_BYTES * BUFFER_STEP_BYTES;
        return (int) Math.min(max, rounded - HEADER_BYTES);
    }

    /** Loaded when the first large array is asked about, since the JVM's management takes time to load. */
    private static final class Regions {
        private static final List<String> WITHOUT_REGIONS =
                List.of("UseSerialGC", "UseParallelGC", "UseZGC", "UseEpsilonGC");

        private static final long MIN_BYTES = 1024 * 1024;
        private static final long MAX_BYTES = 32 * MIN_BYTES;
        private static final int MOST = 2048;

        static final long BYTES = find();

        private static long find() {
            try {
                HotSpotDiagnosticMXBean virtualMachine =
                        ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
                if (virtualMachine == null) {
                    return assumed();
                }
                for (String collector : WITHOUT_REGIONS) {
                    if (has(virtualMachine, collector)) {
                        return 0;
                    }
                }
                long said = Long.parseLong(
                        virtualMachine.getVMOption("G1HeapRegionSize").getValue());
                return said > 0 ? said : assumed();
            } catch (IllegalArgumentException | LinkageError unknown) {
                // another virtual machine, or an image of one without its management
                return assumed();
            }
        }

        private static boolean has(HotSpotDiagnosticMXBean virtualMachine, String collector) {
            try {
                return Boolean.parseBoolean(
                        virtualMachine.getVMOption(collector).getValue());
            } catch (IllegalArgumentException unknown) {
                return false;
            }
        }

        /** As G1 reckons: a 2048th of the heap, a power of two from 1 to 32 MiB. */
        private static long assumed() {
            long part = Long.highestOneBit(Math.max(1, Runtime.getRuntime().maxMemory() / MOST));
            return Math.max(MIN_BYTES, Math.min(MAX_BYTES, part));
        }
    }
}
