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
 * Processor time and memory of one running process. Each reading is a few microseconds of work in the caller and none in the process
 * that is watched. Thread-safe.
 */
public final class ProcessProbe {
    private static final Path PROC = Path.of("/proc");
    /** {@code _SC_CLK_TCK} is 100 on every Linux that the JDK supports. Source: proc(5), time(7). */
    private static final long NANOS_A_TICK = 10_000_000;

    private final ProcessHandle process;
    private final Path folder;
    /** Whether a thread is a compiler's, by its id; its name is read once. Guarded by this. */
    private final Map<String, Boolean> isCompiler = new HashMap<>();

    /** Processor time of each compiler thread, as last seen. Guarded by this. */
    private final Map<String, Long> compilersNs = new HashMap<>();

    /** @param folder of the process below {@code /proc} */
    ProcessProbe(ProcessHandle process, Path folder) {
        this.process = process;
        this.folder = folder;
    }

    /** A probe remembers what ended compiler threads took: differences are taken between readings of one probe. */
    public static ProcessProbe of(ProcessHandle process) {
        return new ProcessProbe(process, PROC.resolve(Long.toString(process.pid())));
    }

    public boolean isAlive() {
        return process.isAlive();
    }

    /**
     * Processor time used since the process began, in user and kernel mode, all threads, ended ones included. On Linux the kernel's
     * nanosecond account of living threads would miss ended ones, so this reads ticks of 10 ms: over a window of 2 s an error of at most
     * 0.5 % of one core.
     *
     * @return nanoseconds; empty when the process is gone
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
     * The part of {@link #cpuNs} that the JVM's just-in-time compilers took, by the names HotSpot gives their threads.
     * A thread that has ended keeps what it was last seen with: HotSpot ends compiler threads that have nothing to do,
     * and a sum that fell with them would hide what the others take.
     *
     * @return nanoseconds, never less than the time before; empty when the process is gone or this system does not tell
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

    /** Processor time of a thread, by the scheduler's own account where the kernel keeps one, in ticks otherwise. */
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
     * Resident set: memory the process holds in RAM, shared pages included.
     *
     * @return bytes; empty when the process is gone or this system does not tell
     */
    public OptionalLong residentBytes() {
        try {
            return kilobytes(Files.readString(folder.resolve("status")), "VmRSS:");
        } catch (IOException gone) {
            return OptionalLong.empty();
        }
    }

    /**
     * Memory in RAM, each shared page divided by the processes that share it: what can be added up over the processes
     * of one server.
     *
     * @return bytes; the resident set where the kernel does not tell; empty when the process is gone
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
        // the command name may hold spaces and brackets: the fields begin behind the last bracket
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
