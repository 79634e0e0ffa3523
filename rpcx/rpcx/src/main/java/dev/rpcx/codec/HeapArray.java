package dev.rpcx.codec;

import com.sun.management.HotSpotDiagnosticMXBean;
import io.netty.buffer.ByteBuf;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Computes what an array takes of the heap, and to what length a buffer on the heap should grow. The class is public
 * only because the classes that charge for buffers are in another package.
 *
 * <p>A collector that divides the heap into regions (G1, the JVM's default) gives whole regions to an array of more
 * than half a region. Half a region is 512 KiB on heaps up to 2 GiB: an array of 512 KiB takes 1 MiB there, and an
 * array of 1 MiB takes 2 MiB, since each has a header. No smaller array crosses from one region to the next, so two
 * arrays of 400 kB take 1 MiB. Whatever limits the memory that a peer can fill has to count that. Source:
 * <a href="https://docs.oracle.com/en/java/javase/25/gctuning/garbage-first-g1-garbage-collector1.html">HotSpot Garbage
 * Collection Tuning Guide, Humongous Objects</a>.
 */
public final class HeapArray {
    /** Max bytes of an array besides its elements: the header in front of them, and what aligns the array's end. */
    private static final int HEADER_BYTES = 24;

    /**
     * Up to this size an array counts as the bytes of its elements. Such arrays waste at most a sixteenth of each
     * region, so that nothing needs to be known of the collector.
     */
    static final int ALWAYS_EXACT_BYTES = 64 * 1024;

    /** Beyond this size buffers grow to powers of two less a header, which fit regions. */
    private static final int MIN_ROUNDED_BYTES = 32 * 1024;

    /**
     * Beyond this size a buffer grows in steps of this size, and no longer doubles. Netty's buffers have the same step.
     */
    private static final int BUFFER_STEP_BYTES = 4 * 1024 * 1024;

    private static final AtomicBoolean PREPARED = new AtomicBoolean();

    private HeapArray() {}

    /**
     * Lets another thread find out the size of the heap's regions, once. That takes 35 to 350 ms, for which no event
     * loop should block at the first large array.
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
            // the first thread that needs the size of the regions finds it out
        }
    }

    /**
     * Returns the bytes that an array takes of the heap.
     *
     * @param bytes bytes of its elements, from 0
     * @return at least {@code bytes}, and at most twice the sum of {@code bytes} and a header of 24 bytes
     */
    public static long taken(long bytes) {
        return bytes <= ALWAYS_EXACT_BYTES ? bytes : taken(bytes, Regions.BYTES);
    }

    /** @param regionBytes bytes of one region; 0 if the heap has no regions */
    static long taken(long bytes, long regionBytes) {
        long all = bytes + HEADER_BYTES;
        if (regionBytes == 0 || bytes <= ALWAYS_EXACT_BYTES) {
            return bytes;
        }
        if (all <= regionBytes / 2) {
            // the array counts as its part of a region that holds as many arrays of this size as fit
            return Math.max(bytes, regionBytes / (regionBytes / all));
        }
        return (all + regionBytes - 1) / regionBytes * regionBytes;
    }

    /** Returns the bytes that a buffer takes of the heap. */
    public static long taken(ByteBuf buffer) {
        return taken(buffer.capacity());
    }

    /**
     * Returns how many more bytes of the heap a buffer takes after {@code bytes} bytes have been written behind its
     * content.
     */
    public static long growth(ByteBuf buffer, int bytes) {
        int needed = buffer.writerIndex() + bytes;
        return needed <= buffer.capacity() ? 0 : taken(capacity(buffer, needed)) - taken(buffer);
    }

    /**
     * Makes room for {@code bytes} bytes behind the content of the buffer. {@link #growth} says beforehand what that
     * costs.
     */
    public static void grow(ByteBuf buffer, int bytes) {
        int needed = buffer.writerIndex() + bytes;
        if (needed > buffer.capacity()) {
            buffer.capacity(capacity(buffer, needed));
        }
    }

    private static int capacity(ByteBuf buffer, int needed) {
        int max = buffer.maxCapacity();
        if (needed <= MIN_ROUNDED_BYTES || needed > max) {
            // the allocator throws if the buffer cannot grow so far
            return buffer.alloc().calculateNewCapacity(needed, max);
        }
        long all = (long) needed + HEADER_BYTES;
        long rounded = all <= BUFFER_STEP_BYTES
                ? Long.highestOneBit(all - 1) << 1
                : (all + BUFFER_STEP_BYTES - 1) / BUFFER_STEP_BYTES * BUFFER_STEP_BYTES;
        return (int) Math.min(max, rounded - HEADER_BYTES);
    }

    /**
     * Holds the size of the heap's regions. The class is loaded when the first large array is asked about, since the
     * JVM's management takes time to load.
     */
    private static final class Regions {
        private static final List<String> WITHOUT_REGIONS =
                List.of("UseSerialGC", "UseParallelGC", "UseZGC", "UseEpsilonGC");

        private static final long MIN_BYTES = 1024 * 1024;
        private static final long MAX_BYTES = 32 * MIN_BYTES;
        private static final int REGIONS = 2048;

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
                // this is another virtual machine, or a native image without management
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

        /**
         * Returns a 2048th of the max heap, rounded down to a power of two, from 1 to 32 MiB. G1 computes the size of
         * its regions in the same way, except that current versions of HotSpot round up.
         */
        private static long assumed() {
            long part = Long.highestOneBit(Math.max(1, Runtime.getRuntime().maxMemory() / REGIONS));
            return Math.max(MIN_BYTES, Math.min(MAX_BYTES, part));
        }
    }
}
