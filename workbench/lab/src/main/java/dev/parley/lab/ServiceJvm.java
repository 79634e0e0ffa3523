package dev.parley.lab;

import dev.parley.model.Limits;
import java.util.ArrayList;
import java.util.List;

/** How the processes' JVMs are set up: all services alike, whatever they speak. */
final class ServiceJvm {
    private static final long MAX_HEAP_MB = 1024;
    private static final long HEAP_BEGIN_MB = 32;
    /** Of a limit on memory: the rest is for threads, classes, compiled code and buffers outside of the heap. */
    private static final double HEAP_SHARE = 0.5;

    /** Only to keep the JVM from printing warnings about libraries. */
    private static final List<String> QUIET =
            List.of("--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow");

    /** Of services without a limit on memory. */
    static final List<String> FLAGS = flags(Limits.Share.ALL);

    static final List<String> GENERATOR_FLAGS = List.of(
            "-Xms128m", "-Xmx1g", "--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow");

    static final String SERVICE = "dev.parley.service.ServiceMain";
    static final String GENERATOR = "dev.parley.load.GeneratorMain";

    private ServiceJvm() {}

    /**
     * The heap's bound is the same for all, so that memory is comparable; collector and compilers are the JVM's own choice, as in most
     * services. Within a limit on memory that is smaller than twice this heap, half of the limit: a heap as large as the limit would have
     * the system kill a service that a collection would have saved.
     */
    static List<String> flags(Limits.Share share) {
        long heapMb = share.memoryBytes()
                .map(bytes -> Math.min(MAX_HEAP_MB, Math.max(HEAP_BEGIN_MB / 2, (long) (bytes * HEAP_SHARE) >> 20)))
                .orElse(MAX_HEAP_MB);
        List<String> flags =
                new ArrayList<>(List.of("-Xms" + Math.min(HEAP_BEGIN_MB, heapMb) + "m", "-Xmx" + heapMb + "m"));
        flags.addAll(QUIET);
        return List.copyOf(flags);
    }
}
