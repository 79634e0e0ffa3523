package dev.parley.load;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Processor time of this process, its just-in-time compilers left out where the system tells them apart: they are busy in a generator's first
 * seconds whatever it sends, on a core of their own, and keep no request waiting.
 */
final class OwnCpu {
    /** Of Linux, whatever its kernel's own: {@code getconf CLK_TCK}. Source: proc(5), utime. */
    private static final long NANOS_A_TICK = 10_000_000;

    private static final Path THREADS = Path.of("/proc/self/task");

    /**
     * Processor time of each compiler thread in ticks, as last seen, by its id. HotSpot ends compiler threads that have
     * nothing to do: a sum of the living ones would fall by all that an ended one took, and that would be said to be
     * the generator's own.
     */
    private static final Map<String, Long> SEEN_TICKS = new ConcurrentHashMap<>();

    private OwnCpu() {}

    static long ns() {
        long all = ManagementFactory.getOperatingSystemMXBean() instanceof OperatingSystemMXBean system
                ? Math.max(0, system.getProcessCpuTime())
                : 0;
        return Math.max(0, all - compilersNs());
    }

    private static long compilersNs() {
        if (!Files.isDirectory(THREADS)) {
            return 0;
        }
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(THREADS)) {
            for (Path thread : threads) {
                long ticks = compilerTicks(thread);
                if (ticks > 0) {
                    SEEN_TICKS.merge(String.valueOf(thread.getFileName()), ticks, Math::max);
                }
            }
        } catch (IOException unreadable) {
            return 0;
        }
        return NANOS_A_TICK
                * SEEN_TICKS.values().stream().mapToLong(Long::longValue).sum();
    }

    private static long compilerTicks(Path thread) {
        try {
            String stat = Files.readString(thread.resolve("stat"));
            int end = stat.lastIndexOf(')');
            String name = stat.substring(stat.indexOf('(') + 1, end);
            if (!name.startsWith("C1 Compiler") && !name.startsWith("C2 Compiler")) {
                return 0;
            }
            String[] fields = stat.substring(end + 2).split(" ");
            return Long.parseLong(fields[11]) + Long.parseLong(fields[12]);
        } catch (IOException ended) {
            return 0;
        }
    }
}
