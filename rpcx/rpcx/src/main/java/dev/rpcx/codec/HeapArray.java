package dev.rpcx.codec;

import com.sun.management.HotSpotDiagnosticMXBean;
import io.netty.buffer.ByteBuf;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Computes how many bytes of the heap an array takes, and to which capacity a buffer on the heap should grow. The class
 * is public only because other packages of RPCX count the memory of buffers.
 *
 * <p>Some garbage collectors, such as G1, the usual default of the JVM, divide the heap into regions of equal size. For
 * example, a region has 1 MiB in a heap of up to 2 GiB. Arrays can then waste memory in two ways:
 *
 * <ul>
 *   <li>If the header and the elements of an array take more than half a region, the array gets one or more whole
 *       regions, and no other object shares them. For example, 512 KiB of elements and the header are more than half of
 *       1 MiB, so the array takes 1 MiB. An array with 1 MiB of elements takes 2 MiB.
 *   <li>A smaller array lies within one region. For example, only two arrays of 400 kB fit into a region of 1 MiB,
 *       since a third one would extend into the next region.
 * </ul>
 *
 * <p>All limits on the memory that a peer can fill have to count this waste. Source:
 * <a href="https://docs.oracle.com/en/java/javase/25/gctuning/garbage-first-g1-garbage-collector1.html">HotSpot Garbage
 * Collection Tuning Guide, Humongous Objects</a>.
 */
public final class HeapArray {
    /**
     * The maximum number of bytes that an array takes in addition to its elements, for its header and for alignment.
     */
    private static final int MAX_HEADER_BYTES = 24;

    /**
     * The maximum size in bytes of an array for which no waste is counted. If arrays of this size fill a region of the
     * heap, at most a sixteenth of the region is wasted.
     */
    static final int MAX_ALWAYS_EXACT_BYTES = 64 * 1024;

    /**
     * A buffer that needs more than this capacity in bytes grows to a power of two minus {@code MAX_HEADER_BYTES}. With
     * its header, the array of such a buffer then fits into the regions of the heap without waste. A buffer that needs
     * more than {@code BUFFER_STEP_BYTES} grows to a multiple of {@code BUFFER_STEP_BYTES} minus
     * {@code MAX_HEADER_BYTES} instead, which can waste a part of a large region.
     */
    private static final int MIN_ROUNDED_BYTES = 32 * 1024;

    /**
     * Up to this capacity in bytes, a buffer grows by doubling. Beyond it, a buffer grows by this number of bytes at a
     * time, as in Netty.
     */
    private static final int BUFFER_STEP_BYTES = 4 * 1024 * 1024;

    /** Whether {@link #prepare} has been called. Any thread may call it, but only the first call starts a thread. */
    private static final AtomicBoolean PREPARED = new AtomicBoolean();

    private HeapArray() {}

    /**
     * Starts a thread that asks the JVM for the size of the heap's regions, which takes 35 to 350 ms. Only the first
     * call starts a thread. Without this call, the first thread that computes the bytes of a large array would block
     * for that time, even if that thread is an event loop.
     */
    public static void prepare() {
        if (!PREPARED.compareAndSet(false, true)) {
            return;
        }
        try {
            Thread thread = new Thread(() -> heapBytes(MAX_ALWAYS_EXACT_BYTES + 1L), "rpcx-heap");
            thread.setDaemon(true);
            thread.setContextClassLoader(null);
            thread.start();
        } catch (OutOfMemoryError noThread) {
            // The thread could not be started. So the first thread that needs the size of the heap's regions asks the
            // JVM for it, and blocks meanwhile.
        }
    }

    /**
     * Returns how many bytes of the heap an array takes.
     *
     * @param bytes number of bytes that the array's elements take, 0 or more
     * @return at least {@code bytes}, and at most twice the sum of {@code bytes} and a header of 24 bytes
     */
    public static long heapBytes(long bytes) {
        return bytes <= MAX_ALWAYS_EXACT_BYTES ? bytes : heapBytes(bytes, Regions.BYTES);
    }

    /**
     * Returns how many bytes of the heap an array takes if the heap's regions have the given size.
     *
     * @param bytes number of bytes that the array's elements take
     * @param regionBytes size of a region in bytes; 0 if the heap has no regions
     */
    static long heapBytes(long bytes, long regionBytes) {
        long all = bytes + MAX_HEADER_BYTES;
        if (regionBytes == 0 || bytes <= MAX_ALWAYS_EXACT_BYTES) {
            return bytes;
        }
        if (all <= regionBytes / 2) {
            // a region holds as many arrays of this size as fit, and each counts as an equal part of the region
            return Math.max(bytes, regionBytes / (regionBytes / all));
        }
        return (all + regionBytes - 1) / regionBytes * regionBytes;
    }

    /** Returns how many bytes of the heap the array of a buffer takes. */
    public static long heapBytes(ByteBuf buffer) {
        return heapBytes(buffer.capacity());
    }

    /** Returns how many more bytes of the heap a buffer would take if its content grew by {@code bytes}. */
    public static long growth(ByteBuf buffer, int bytes) {
        int needed = buffer.writerIndex() + bytes;
        return needed <= buffer.capacity() ? 0 : heapBytes(capacity(buffer, needed)) - heapBytes(buffer);
    }

    /**
     * Gives a buffer enough capacity for its content to grow by {@code bytes}. Before the buffer grows, {@link #growth}
     * returns how many more bytes of the heap the buffer will take.
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
        long all = (long) needed + MAX_HEADER_BYTES;
        long rounded = all <= BUFFER_STEP_BYTES
                ? Long.highestOneBit(all - 1) << 1
                : (all + BUFFER_STEP_BYTES - 1) / BUFFER_STEP_BYTES * BUFFER_STEP_BYTES;
        return (int) Math.min(max, rounded - MAX_HEADER_BYTES);
    }

    /**
     * Holds the size of the heap's regions. It is a separate class so that the JVM's management classes, which load
     * slowly, are loaded only when the size is needed.
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
                // this virtual machine is not HotSpot, or it is a native image without management
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
         * Returns the assumed size of a region, in bytes, for a JVM that does not report the size. The assumed size is
         * 1/2048 of the maximum heap, rounded down to a power of two, at least 1 MiB and at most 32 MiB. G1 computes
         * the size in the same way, except that current versions of HotSpot round up.
         */
        private static long assumed() {
            long part = Long.highestOneBit(Math.max(1, Runtime.getRuntime().maxMemory() / REGIONS));
            return Math.max(MIN_BYTES, Math.min(MAX_BYTES, part));
        }
    }
}
