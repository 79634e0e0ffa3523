package dev.rpcx.codec;

import com.sun.management.HotSpotDiagnosticMXBean;
import io.netty.buffer.ByteBuf;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Computes how many bytes of the heap an array takes, and to which length a buffer on the heap should grow. The class
 * is public only because the classes that charge for buffers are in another package.
 *
 * <p>Some collectors divide the heap into regions, among them G1, the JVM's default. An array of more than half a
 * region gets whole regions, which it shares with no other object. On heaps up to 2 GiB, a region is 1 MiB, so half a
 * region is 512 KiB. There, an array of 512 KiB takes 1 MiB: with its header, the array is larger than half a region.
 * An array of 1 MiB takes 2 MiB: with its header, the array is larger than one region. An array of at most half a
 * region never crosses from one region to the next. So a region holds only two arrays of 400 kB: the rest of the region
 * is too small for a third, and the two count as 1 MiB. All limits on the memory that a peer can fill have to count
 * these additional bytes. Source:
 * <a href="https://docs.oracle.com/en/java/javase/25/gctuning/garbage-first-g1-garbage-collector1.html">HotSpot Garbage
 * Collection Tuning Guide, Humongous Objects</a>.
 */
public final class HeapArray {
    /**
     * Max bytes of an array in addition to its elements: the header before them, and the padding that aligns the
     * array's end.
     */
    private static final int HEADER_BYTES = 24;

    /**
     * An array of up to this size counts as the bytes of its elements. Such arrays waste at most a sixteenth of each
     * region, so nothing needs to be known about the collector.
     */
    static final int ALWAYS_EXACT_BYTES = 64 * 1024;

    /**
     * Beyond this size, a buffer grows to a power of two minus {@code HEADER_BYTES}, so that the array and its header
     * together fit into regions.
     */
    private static final int MIN_ROUNDED_BYTES = 32 * 1024;

    /**
     * Beyond this size, a buffer grows in steps of this size instead of doubling. Netty's own buffers have the same
     * step.
     */
    private static final int BUFFER_STEP_BYTES = 4 * 1024 * 1024;

    private static final AtomicBoolean PREPARED = new AtomicBoolean();

    private HeapArray() {}

    /**
     * Starts a thread that finds out the size of the heap's regions, which takes 35 to 350 ms. Only the first call does
     * so. Without this call, the thread that is the first to compute the bytes of a large array would block for that
     * time, and that thread may be an event loop.
     */
    public static void prepare() {
        if (!PREPARED.compareAndSet(false, true)) {
            return;
        }
        try {
            Thread thread = new Thread(() -> heapBytes(ALWAYS_EXACT_BYTES + 1L), "rpcx-heap");
            thread.setDaemon(true);
            thread.setContextClassLoader(null);
            thread.start();
        } catch (OutOfMemoryError noThread) {
            // no thread can be started now, so the first thread that needs the size of the regions finds it out
        }
    }

    /**
     * Returns how many bytes of the heap an array takes.
     *
     * @param bytes bytes of its elements, 0 or more
     * @return at least {@code bytes}, and at most twice the sum of {@code bytes} and a header of 24 bytes
     */
    public static long heapBytes(long bytes) {
        return bytes <= ALWAYS_EXACT_BYTES ? bytes : heapBytes(bytes, Regions.BYTES);
    }

    /**
     * Returns how many bytes of the heap an array takes if the heap's regions have this size.
     *
     * @param bytes bytes of its elements
     * @param regionBytes bytes of one region; 0 if the heap has no regions
     */
    static long heapBytes(long bytes, long regionBytes) {
        long all = bytes + HEADER_BYTES;
        if (regionBytes == 0 || bytes <= ALWAYS_EXACT_BYTES) {
            return bytes;
        }
        if (all <= regionBytes / 2) {
            // a region holds as many arrays of this size as fit, and each counts as an equal part of the region
            return Math.max(bytes, regionBytes / (regionBytes / all));
        }
        return (all + regionBytes - 1) / regionBytes * regionBytes;
    }

    /** Returns how many bytes of the heap a buffer takes. */
    public static long heapBytes(ByteBuf buffer) {
        return heapBytes(buffer.capacity());
    }

    /**
     * Returns how many more bytes of the heap a buffer will take once its content has grown by {@code bytes}.
     */
    public static long growth(ByteBuf buffer, int bytes) {
        int needed = buffer.writerIndex() + bytes;
        return needed <= buffer.capacity() ? 0 : heapBytes(capacity(buffer, needed)) - heapBytes(buffer);
    }

    /**
     * Gives the buffer enough room for its content to grow by {@code bytes}. {@link #growth} returns beforehand how
     * many more bytes of the heap the buffer then takes.
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
            // the allocator decides how small buffers grow, and throws if the buffer cannot grow to the length that is
            // needed
            return buffer.alloc().calculateNewCapacity(needed, max);
        }
        long all = (long) needed + HEADER_BYTES;
        long rounded = all <= BUFFER_STEP_BYTES
                ? Long.highestOneBit(all - 1) << 1
                : (all + BUFFER_STEP_BYTES - 1) / BUFFER_STEP_BYTES * BUFFER_STEP_BYTES;
        return (int) Math.min(max, rounded - HEADER_BYTES);
    }

    /**
     * Holds the size of the heap's regions. The JVM loads this class only when the size of a large array is first asked
     * for. It is not loaded earlier, because it loads the JVM's management, which takes time.
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
         * Returns the size of a region that is assumed if the JVM does not give it. It is 1/2048 of the max heap,
         * rounded down to a power of two, and at least 1 MiB and at most 32 MiB. G1 computes the size of its regions in
         * the same way, except that current versions of HotSpot round up.
         */
        private static long assumed() {
            long part = Long.highestOneBit(Math.max(1, Runtime.getRuntime().maxMemory() / REGIONS));
            return Math.max(MIN_BYTES, Math.min(MAX_BYTES, part));
        }
    }
}
