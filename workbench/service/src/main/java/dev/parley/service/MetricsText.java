package dev.parley.service;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.Optional;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * A service's figures in the Prometheus text format 0.0.4. Names follow Prometheus' own: seconds, bytes,
 * {@code _total}.
 */
final class MetricsText {
    /** Upper bounds of the hop histogram in seconds: 100 µs to 10 s, about three a decade. */
    private static final double[] BUCKETS = {
        0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10
    };

    private MetricsText() {}

    static String of(@Nullable Microservice service) {
        StringBuilder text = new StringBuilder();
        if (service != null) {
            counter(text, "parley_requests_total", "Requests that reached this service.", service.requests());
            counter(
                    text,
                    "parley_request_failures_total",
                    "Requests that this service answered with an error.",
                    service.failures());
            head(text, "parley_hop_failures_total", "counter", "Calls to a neighbour that failed.");
            service.neighbours()
                    .forEach((peer, neighbour) -> text.append(
                            "parley_hop_failures_total{peer=\"%s\"} %d%n".formatted(peer, neighbour.failures())));
            head(
                    text,
                    "parley_hop_seconds",
                    "histogram",
                    "Time of this service's calls to a neighbour, on its own clock.");
            service.neighbours().forEach((peer, neighbour) -> histogram(text, peer, neighbour.total()));
        }
        if (service != null) {
            service.figures().forEach((name, value) -> {
                head(
                        text,
                        "parley_work_" + name,
                        name.endsWith("_total") ? "counter" : "gauge",
                        "Of the work's cache or its pool of connections.");
                text.append(String.format(Locale.ROOT, "parley_work_%s %s%n", name, value));
            });
        }
        ProcessHandle.current().info().totalCpuDuration().map(Duration::toNanos).ifPresent(cpuNs -> {
            head(text, "process_cpu_seconds_total", "counter", "Processor time, user and system.");
            text.append(String.format(Locale.ROOT, "process_cpu_seconds_total %.3f%n", cpuNs / 1e9));
        });
        residentKilobytes().ifPresent(kb -> gauge(text, "process_resident_memory_bytes", "Resident set.", kb * 1024));
        MemoryMXBean memory = ManagementFactory.getMemoryMXBean();
        gauge(
                text,
                "jvm_memory_heap_used_bytes",
                "Heap in use.",
                memory.getHeapMemoryUsage().getUsed());
        gauge(
                text,
                "jvm_threads",
                "Live platform threads.",
                ManagementFactory.getThreadMXBean().getThreadCount());
        return text.toString();
    }

    private static void histogram(StringBuilder text, String peer, Histogram histogram) {
        for (double bound : BUCKETS) {
            text.append(String.format(
                    Locale.ROOT,
                    "parley_hop_seconds_bucket{peer=\"%s\",le=\"%s\"} %d%n",
                    peer,
                    Double.toString(bound),
                    histogram.getTotalCount() == 0 ? 0 : histogram.getCountBetweenValues(0, (long) (bound * 1e9))));
        }
        text.append(String.format(
                Locale.ROOT,
                "parley_hop_seconds_bucket{peer=\"%s\",le=\"+Inf\"} %d%nparley_hop_seconds_sum{peer=\"%s\"} %.9f%nparley_hop_seconds_count{peer=\"%s\"} %d%n",
                peer,
                histogram.getTotalCount(),
                peer,
                histogram.getTotalCount() == 0 ? 0 : histogram.getMean() * histogram.getTotalCount() / 1e9,
                peer,
                histogram.getTotalCount()));
    }

    private static Optional<Long> residentKilobytes() {
        try {
            return Files.readString(Path.of("/proc/self/status"))
                    .lines()
                    .filter(line -> line.startsWith("VmRSS:"))
                    .map(line -> Long.parseLong(line.replaceAll("[^0-9]", "")))
                    .findFirst();
        } catch (IOException elsewhere) {
            return Optional.empty();
        }
    }

    private static void counter(StringBuilder text, String name, String help, long value) {
        head(text, name, "counter", help);
        text.append(name).append(' ').append(value).append('\n');
    }

    private static void gauge(StringBuilder text, String name, String help, long value) {
        head(text, name, "gauge", help);
        text.append(name).append(' ').append(value).append('\n');
    }

    private static void head(StringBuilder text, String name, String type, String help) {
        text.append("# HELP ").append(name).append(' ').append(help).append('\n');
        text.append("# TYPE ").append(name).append(' ').append(type).append('\n');
    }
}
