package dev.rpcx.probe;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalLong;

/**
 * Reads the processor time and the memory of one running process from the system. The thread of the caller does the
 * work of a reading, and the process that is read does nothing for it. Thread-safe.
 */
public final class ProcessProbe {
    private static final Path PROC = Path.of("/proc");
    /**
     * Length of a tick, in which Linux counts processor time. {@code _SC_CLK_TCK}, the number of ticks in a second, is
     * 100 on every Linux that the JDK supports. Source: proc(5), time(7).
     */
    private static final long NANOS_A_TICK = 10_000_000;

    private final ProcessHandle process;
    private final Path folder;
    /** Whether each thread, by its id, is a compiler's. The name of a thread is read only once. Guarded by this. */
    private final Map<String, Boolean> isCompiler = new HashMap<>();

    /** Processor time of each compiler thread by its id, as it was last read. Guarded by this. */
    private final Map<String, Long> compilersNs = new HashMap<>();

    /** @param folder the folder of the process below {@code /proc} */
    ProcessProbe(ProcessHandle process, Path folder) {
        this.process = process;
        this.folder = folder;
    }

    /**
     * Returns a probe of this process. A probe remembers the processor time of compiler threads that have ended. So
     * readings of {@link #compilersCpuNs} can be compared only with readings of the same probe.
     */
    public static ProcessProbe of(ProcessHandle process) {
        return new ProcessProbe(process, PROC.resolve(Long.toString(process.pid())));
    }

    public boolean isAlive() {
        return process.isAlive();
    }

    /**
     * Returns the processor time that all threads of the process have used since it began, in user mode and in kernel
     * mode. Threads that have ended are included. The files in which Linux counts nanoseconds leave them out, so this
     * method reads ticks of 10 ms there. Linux rounds user time and kernel time down to whole ticks. So a difference of
     * two readings is wrong by less than 20 ms, which is 1 % of one core over 2 s.
     *
     * @return nanoseconds; empty if the process is gone, or if this system does not say
     */
    public OptionalLong cpuNs() {
        if (Files.isDirectory(PROC.resolve("self"))) {
            try {
                return OptionalLong.of(cpuTicks(Files.readString(folder.resolve("stat"))) * NANOS_A_TICK);
            } catch (IOException gone) {
                return OptionalLong.empty();
            }
        }
        return process.info()
                .totalCpuDuration()
                .map(Duration::toNanos)
                .map(OptionalLong::of)
                .orElseGet(OptionalLong::empty);
    }

    /**
     * Returns the part of {@link #cpuNs} that the JVM's just-in-time compilers have used. Their threads are known by
     * the names that HotSpot gives them. HotSpot ends compiler threads that have nothing to do. Such a thread still
     * counts with the time that was last read. Otherwise the sum would decrease, and hide the time that the other
     * threads use.
     *
     * @return nanoseconds, never less than in the reading before; empty if the process is gone, or if this system does
     *     not say
     */
    public synchronized OptionalLong compilersCpuNs() {
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(folder.resolve("task"))) {
            for (Path thread : threads) {
                String id = String.valueOf(thread.getFileName());
                if (isCompiler.computeIfAbsent(id, _ -> isCompiler(thread))) {
                    compilersNs.merge(id, threadNs(thread), Math::max);
                }
            }
        } catch (IOException gone) {
            return OptionalLong.empty();
        }
        return OptionalLong.of(
                compilersNs.values().stream().mapToLong(Long::longValue).sum());
    }

    private static boolean isCompiler(Path thread) {
        try {
            String name = Files.readString(thread.resolve("comm"));
            return name.startsWith("C1 Compiler") || name.startsWith("C2 Compiler");
        } catch (IOException ended) {
            return false;
        }
    }

    /**
     * Returns the processor time of a thread. It comes from the kernel's scheduler if that counts nanoseconds, and
     * otherwise from the thread's ticks. It is 0 if the thread has ended.
     */
    private static long threadNs(Path thread) {
        try {
            long ns =
                    Long.parseLong(Files.readString(thread.resolve("schedstat")).split(" ")[0]);
            return ns > 0 ? ns : cpuTicks(Files.readString(thread.resolve("stat"))) * NANOS_A_TICK;
        } catch (IOException notKept) {
            try {
                return cpuTicks(Files.readString(thread.resolve("stat"))) * NANOS_A_TICK;
            } catch (IOException ended) {
                return 0;
            }
        }
    }

    /**
     * Returns the resident set, that is, the memory of the process that is in RAM. Pages that it shares with other
     * processes are included.
     *
     * @return bytes; empty if the process is gone, or if this system does not say
     */
    public OptionalLong residentBytes() {
        try {
            return kilobytes(Files.readString(folder.resolve("status")), "VmRSS:");
        } catch (IOException gone) {
            return OptionalLong.empty();
        }
    }

    /**
     * Returns the memory of the process that is in RAM, in which each shared page is divided by the number of processes
     * that share it. So the figures of the processes of one server can be added up.
     *
     * @return bytes; the resident set if the kernel does not say; empty if the process is gone, or if this system does
     *     not say either
     */
    public OptionalLong proportionalBytes() {
        try {
            OptionalLong share = kilobytes(Files.readString(folder.resolve("smaps_rollup")), "Pss:");
            return share.isPresent() ? share : residentBytes();
        } catch (IOException notTold) {
            return residentBytes();
        }
    }

    static long cpuTicks(String stat) {
        // The command name can contain spaces and brackets. The other fields begin behind the last bracket.
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return Long.parseLong(fields[11]) + Long.parseLong(fields[12]);
    }

    static OptionalLong kilobytes(String text, String key) {
        return text.lines()
                .filter(line -> line.startsWith(key))
                .mapToLong(line -> Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024)
                .findFirst();
    }
}
