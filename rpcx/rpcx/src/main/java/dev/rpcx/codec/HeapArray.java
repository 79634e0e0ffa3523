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
 * <p>Some collectors, such as G1, the JVM's default, divide the heap into regions. An array of more than half a region,
 * with its header, gets whole regions of its own. On heaps up to 2 GiB, a region is 1 MiB: there, an array of 512 KiB
 * takes 1 MiB, and an array of 1 MiB takes 2 MiB. Smaller arrays never cross from one region to the next: a region
 * holds only two arrays of 400 kB, which count as 1 MiB. All limits on the memory that a peer can fill have to count
 * these additional bytes. Source:
 * <a href="https://docs.oracle.com/en/java/javase/25/gctuning/garbage-first-g1-garbage-collector1.html">HotSpot Garbage
 * Collection Tuning Guide, Humongous Objects</a>.
 */
public final class HeapArray {
    /** Max bytes of an array in addition to its elements: the header, and the padding that aligns the end. */
    private static final int HEADER_BYTES = 24;

    /**
     * An array of up to this size counts as the bytes of its elements, whatever the collector: such arrays waste at
     * most a sixteenth of each region.
     */
    static final int ALWAYS_EXACT_BYTES = 64 * 1024;

    /**
     * Beyond this size, a buffer grows to a power of two minus {@code HEADER_BYTES}, so that it fits into regions with
     * its header.
     */
    private static final int MIN_ROUNDED_BYTES = 32 * 1024;

    /** Beyond this size, a buffer grows in steps of this size instead of doubling, as in Netty. */
    private static final int BUFFER_STEP_BYTES = 4 * 1024 * 1024;

    private static final AtomicBoolean PREPARED = new AtomicBoolean();

    private HeapArray() {}

    /**
     * Starts a thread that finds out the size of the heap's regions, which takes 35 to 350 ms. Only the first call does
     * so. Without this call, the first thread that computes the bytes of a large array would block for that time, even
     * if it is an event loop.
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
            // no thread can be started now: the first thread that needs the size of the regions finds it out
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
            // the allocator decides how small buffers grow, and throws if the buffer cannot grow as needed
            return buffer.alloc().calculateNewCapacity(needed, max);
        }
        long all = (long) needed + HEADER_BYTES;
        long rounded = all <= BUFFER_STEP_BYTES
                ? Long.highestOneBit(all - 1) << 1
                : (all + BUFFER_STEP_BYTES - 1) / BUFFER_STEP_BYTES * BUFFER_STEP_BYTES;
        return (int) Math.min(max, rounded - HEADER_BYTES);
    }

    /**
     * Holds the size of the heap's regions. It is a separate class so that the JVM's management, which takes time to
     * load, is loaded only when the size is first asked for.
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
         * Returns the size of a region that is assumed if the JVM does not give it: 1/2048 of the max heap, rounded
         * down to a power of two, at least 1 MiB and at most 32 MiB. G1 computes it in the same way, except that
         * current versions of HotSpot round up.
         */
        private static long assumed() {
            long part = Long.highestOneBit(Math.max(1, Runtime.getRuntime().maxMemory() / REGIONS));
            return Math.max(MIN_BYTES, Math.min(MAX_BYTES, part));
        }
    }
}
