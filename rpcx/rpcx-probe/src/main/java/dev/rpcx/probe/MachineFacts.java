package dev.rpcx.probe;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.OptionalLong;

/** Describes the machine, so that a reader can judge the figures of a run. */
public final class MachineFacts {
    private MachineFacts() {}

    /**
     * Returns the values of system, kernel, CPU, cores, governor and memory by their names, always in this order. The
     * cores are those that this process may use. The governor, which chooses the clock rate, is that of the first core.
     * A CPU, governor or memory that cannot be read is {@code unknown}.
     */
    public static Map<String, String> read() {
        Map<String, String> facts = new LinkedHashMap<>();
        facts.put("system", System.getProperty("os.name") + " " + System.getProperty("os.arch"));
        facts.put("kernel", System.getProperty("os.version"));
        facts.put("cpu", cpuModel());
        facts.put("cores", Integer.toString(Runtime.getRuntime().availableProcessors()));
        facts.put("governor", line(Path.of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")));
        facts.put("memory", memory());
        return Collections.unmodifiableMap(facts);
    }

    /**
     * Returns the memory that programs can still allocate without swapping, as Linux estimates it.
     *
     * @return bytes; empty on other systems
     */
    public static OptionalLong availableMemoryBytes() {
        return ProcessProbe.kilobytes(text(Path.of("/proc/meminfo")), "MemAvailable:");
    }

    private static String cpuModel() {
        return text(Path.of("/proc/cpuinfo"))
                .lines()
                .filter(line -> line.startsWith("model name"))
                .map(line -> line.substring(line.indexOf(':') + 1).strip())
                .findFirst()
                .orElse("unknown");
    }

    private static String memory() {
        OptionalLong bytes = ProcessProbe.kilobytes(text(Path.of("/proc/meminfo")), "MemTotal:");
        return bytes.isEmpty() ? "unknown" : Math.round(bytes.getAsLong() / 1e9) + " GB";
    }

    private static String line(Path file) {
        String text = text(file).strip();
        return text.isEmpty() ? "unknown" : text;
    }

    private static String text(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException absent) {
            return "";
        }
    }
}
