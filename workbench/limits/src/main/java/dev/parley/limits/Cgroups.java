package dev.parley.limits;

import dev.parley.model.Limits.Share;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Control groups, of version 2 where the machine mounts it with its controllers, else of version 1. There is one group
 * for each service, named after this process. A service enters its group before its program begins, so that a JVM sees
 * its limits when it sizes itself.
 */
final class Cgroups implements AutoCloseable {
    static final Path ROOT = Path.of("/sys/fs/cgroup");
    private static final String PREFIX = "parley-";
    /**
     * The kernel's default: a service that has used its part stands still for the rest. Source: Linux,
     * Documentation/scheduler/sched-bwc.
     */
    private static final long LONG_PERIOD_US = 100_000;

    /**
     * A smaller machine is slower and does not stop for 85 ms of 100, so the period is as short as the shortest quota,
     * 1 ms, lets it be.
     */
    private static final long SHORT_PERIOD_US = 10_000;

    private static final double MIN_SHARE_OF_SHORT = 0.1;

    private final Path root;
    private final boolean isV2;
    private final List<Path> made = new ArrayList<>();
    /** The cores that each file with a quota gives once groups are tight. */
    private final Map<Path, Double> cores = new LinkedHashMap<>();

    private boolean isRelaxed;

    private Cgroups(Path root, boolean isV2) {
        this.root = root;
        this.isV2 = isV2;
    }

    /** Why this machine can have no groups; empty where it can. */
    static Optional<String> obstacle(Path root) {
        Optional<Boolean> version = isV2(root);
        if (version.isEmpty()) {
            return Optional.of("no control groups with cpu and memory below " + root);
        }
        for (Path parent : version.get() ? List.of(root) : List.of(root.resolve("cpu"), root.resolve("memory"))) {
            try {
                Path trial = parent.resolve(PREFIX + ProcessHandle.current().pid() + "-trial");
                Files.createDirectory(trial);
                Files.delete(trial);
            } catch (IOException e) {
                return Optional.of(
                        parent + " cannot be written: run as root, in a container with its own control groups");
            }
        }
        return Optional.empty();
    }

    private static Optional<Boolean> isV2(Path root) {
        try {
            List<String> controllers = List.of(
                    Files.readString(root.resolve("cgroup.controllers")).strip().split(" "));
            if (controllers.contains("cpu") && controllers.contains("memory")) {
                return Optional.of(true);
            }
        } catch (IOException notThere) {
            // version 1 has no such file
        }
        return Files.exists(root.resolve("cpu/cpu.cfs_quota_us"))
                        && Files.exists(root.resolve("memory/memory.limit_in_bytes"))
                ? Optional.of(false)
                : Optional.empty();
    }

    static Cgroups in(Path root) {
        Cgroups groups = new Cgroups(root, isV2(root).orElse(true));
        groups.removeAbandoned();
        if (groups.isV2) {
            write(root.resolve("cgroup.subtree_control"), "+cpu +memory");
        }
        return groups;
    }

    /** Makes the group of one service, and returns the files into which a process writes its id to enter. */
    List<Path> group(String service, Share share) {
        String name = PREFIX + ProcessHandle.current().pid() + "-" + service;
        List<Path> doors = new ArrayList<>();
        if (isV2) {
            Path group = make(root.resolve(name));
            share.cores().ifPresent(cores -> limit(group.resolve("cpu.max"), cores));
            share.memoryBytes().ifPresent(bytes -> write(group.resolve("memory.max"), Long.toString(bytes)));
            doors.add(group.resolve("cgroup.procs"));
            return doors;
        }
        share.cores().ifPresent(cores -> {
            Path group = make(root.resolve("cpu").resolve(name));
            write(group.resolve("cpu.cfs_period_us"), Long.toString(periodUs(cores)));
            limit(group.resolve("cpu.cfs_quota_us"), cores);
            doors.add(group.resolve("cgroup.procs"));
        });
        share.memoryBytes().ifPresent(bytes -> {
            Path group = make(root.resolve("memory").resolve(name));
            write(group.resolve("memory.limit_in_bytes"), Long.toString(bytes));
            doors.add(group.resolve("cgroup.procs"));
        });
        return doors;
    }

    /** Gives whole cores to the groups that there are and to those that come, until {@link #tighten}. */
    void relax() {
        isRelaxed = true;
        cores.forEach(this::write);
    }

    void tighten() {
        isRelaxed = false;
        cores.forEach(this::write);
    }

    private void limit(Path quota, double share) {
        cores.put(quota, share);
        write(quota, share);
    }

    private void write(Path quota, double share) {
        long microseconds = Math.round((isRelaxed ? Math.ceil(share) : share) * periodUs(share));
        write(quota, microseconds + (isV2 ? " " + periodUs(share) : ""));
    }

    private static long periodUs(double share) {
        return share < MIN_SHARE_OF_SHORT ? LONG_PERIOD_US : SHORT_PERIOD_US;
    }

    private Path make(Path group) {
        try {
            if (!Files.exists(group)) {
                Files.createDirectory(group);
            }
            made.add(group);
            return group;
        } catch (IOException e) {
            throw new LimitsException("control group " + group + " cannot be made: " + e.getMessage(), e);
        }
    }

    private static void write(Path file, String value) {
        try {
            Files.writeString(file, value);
        } catch (IOException e) {
            throw new LimitsException(file + " does not take " + value + ": " + e.getMessage(), e);
        }
    }

    /** Removes the groups of labs that were killed. A group with a process in it cannot be removed, and stays. */
    private void removeAbandoned() {
        for (Path parent : isV2 ? List.of(root) : List.of(root.resolve("cpu"), root.resolve("memory"))) {
            try (DirectoryStream<Path> groups = Files.newDirectoryStream(parent, PREFIX + "*")) {
                for (Path group : groups) {
                    String[] parts = group.getFileName().toString().split("-", 3);
                    if (parts.length == 3
                            && parts[1].matches("[0-9]{1,18}")
                            && ProcessHandle.of(Long.parseLong(parts[1])).isEmpty()) {
                        remove(group);
                    }
                }
            } catch (IOException e) {
                throw new LimitsException(parent + " cannot be listed: " + e.getMessage(), e);
            }
        }
    }

    private static void remove(Path group) {
        try {
            Files.deleteIfExists(group);
        } catch (IOException inUse) {
            // a process that is just ending; the next lab removes it
        }
    }

    @Override
    public void close() {
        made.forEach(Cgroups::remove);
    }
}
