package dev.parley.cli;

import dev.parley.probe.MachineFacts;
import dev.parley.probe.MachineMood;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;

/** Whether this machine is fit to measure. */
@Command(name = "doctor", description = "Says whether this machine can measure, how noisy it is, and what is missing.")
final class Doctor implements Callable<Integer> {
    private static final int NOISE_SAMPLES = 200;
    /** Above this spread of a fixed piece of work, small differences between technologies cannot be told here. */
    private static final double NOISE_MOST = 0.10;

    @Override
    public Integer call() throws InterruptedException {
        List<String> concerns = new ArrayList<>();
        MachineFacts.read().forEach((name, value) -> System.out.printf(Locale.ROOT, "%-12s %s%n", name, value));
        System.out.printf(
                Locale.ROOT,
                "%-12s %s %s%n",
                "jdk",
                System.getProperty("java.vendor"),
                System.getProperty("java.vm.version"));

        int cores = Runtime.getRuntime().availableProcessors();
        if (cores < 2) {
            concerns.add("one core: client and services take turns; figures show that more than any technology");
        } else if (cores < 8) {
            concerns.add(
                    cores
                            + " cores for a generator and five services: highest throughput says little here; read CPU per request");
        }
        long freeMb = Runtime.getRuntime().maxMemory() / 1_000_000;
        if (freeMb < 500) {
            concerns.add("little memory: " + freeMb + " MB for the lab");
        }

        MachineMood before = MachineMood.now();
        double[] spread = noise();
        MachineMood after = MachineMood.now();
        System.out.printf(
                Locale.ROOT,
                "%-12s a fixed piece of work took %.1f %% longer at its 95th percentile than at its median%n",
                "noise",
                spread[0] * 100);
        if (spread[0] > NOISE_MOST) {
            concerns.add("a noisy machine: close other programs, or trust only large differences");
        }
        concerns.addAll(after.complaintsSince(before));

        for (String tool : List.of("git", "taskset")) {
            if (!isOnPath(tool)) {
                concerns.add(tool + " is not on the PATH: "
                        + (tool.equals("git")
                                ? "results will not name the commit"
                                : "processes cannot be pinned to cores"));
            }
        }
        if (concerns.isEmpty()) {
            System.out.println("fit to measure");
        }
        concerns.forEach(concern -> System.out.println("note: " + concern));
        return 0;
    }

    /** Times the same arithmetic again and again: what is above the median was taken by something else. */
    private static double[] noise() {
        double[] ns = new double[NOISE_SAMPLES];
        long kept = 0;
        for (int i = -50; i < NOISE_SAMPLES; i++) {
            long begin = System.nanoTime();
            for (int k = 0; k < 2_000_000; k++) {
                kept += k ^ (kept >>> 3);
            }
            if (i >= 0) {
                ns[i] = System.nanoTime() - begin;
            }
        }
        if (kept == 42) {
            System.out.print("");
        }
        Arrays.sort(ns);
        double median = ns[NOISE_SAMPLES / 2];
        return new double[] {ns[NOISE_SAMPLES * 95 / 100] / median - 1};
    }

    private static boolean isOnPath(String tool) {
        return Arrays.stream(System.getenv().getOrDefault("PATH", "").split(java.io.File.pathSeparator))
                .anyMatch(folder -> Files.isExecutable(Path.of(folder, tool)));
    }
}
