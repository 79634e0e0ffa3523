package dev.parley.probe;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The files in which Linux counts how often it slowed processors down, for their heat, and for the quota of the control
 * groups that this process is in. The groups of limited services are not among them, since those are slowed down on
 * purpose.
 */
record Throttles(List<Path> heat, List<Path> quotas) {
    static final Throttles HERE = below(Path.of("/"));

    static Throttles below(Path root) {
        List<Path> heat = new ArrayList<>();
        try (DirectoryStream<Path> cores =
                Files.newDirectoryStream(root.resolve("sys/devices/system/cpu"), "cpu[0-9]*")) {
            cores.forEach(core -> addIfThere(heat, core.resolve("thermal_throttle/core_throttle_count")));
        } catch (IOException notLinux) {
            // nothing is counted there
        }
        List<Path> quotas = new ArrayList<>();
        try {
            for (String line : Files.readAllLines(root.resolve("proc/self/cgroup"))) {
                addGroups(quotas, root.resolve("sys/fs/cgroup"), line.split(":", 3));
            }
        } catch (IOException notLinux) {
            // nothing is counted there
        }
        return new Throttles(List.copyOf(heat), List.copyOf(quotas));
    }

    /** Adds a group and all groups above it, any of which may have a quota. Source of the line's form: cgroups(7). */
    private static void addGroups(List<Path> quotas, Path mounted, String[] line) {
        if (line.length < 3
                || !line[1].isEmpty() && !List.of(line[1].split(",")).contains("cpu")) {
            return;
        }
        Path top = line[1].isEmpty() ? mounted : mounted.resolve("cpu");
        for (Path group = top.resolve(line[2].substring(1));
                group != null && group.startsWith(top);
                group = group.getParent()) {
            addIfThere(quotas, group.resolve("cpu.stat"));
        }
    }

    private static void addIfThere(List<Path> files, Path file) {
        if (Files.isReadable(file)) {
            files.add(file);
        }
    }

    long count() {
        long sum = 0;
        for (Path file : heat) {
            sum += number(read(file));
        }
        for (Path file : quotas) {
            sum += read(file)
                    .lines()
                    .filter(line -> line.startsWith("nr_throttled "))
                    .mapToLong(line -> number(line.substring("nr_throttled ".length())))
                    .sum();
        }
        return sum;
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException gone) {
            return "";
        }
    }

    private static long number(String text) {
        return text.isBlank() ? 0 : Long.parseLong(text.strip());
    }
}
