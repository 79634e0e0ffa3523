package dev.parley.cli;

import dev.parley.lab.Catalog;
import dev.parley.lab.Ceiling;
import dev.parley.lab.Checkout;
import dev.parley.lab.LabException;
import dev.parley.model.Launcher;
import dev.parley.probe.MachineMood;
import dev.parley.process.Children;
import dev.rpcx.probe.MachineFacts;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;

/** Whether this machine is fit to measure. */
@Command(
        name = "doctor",
        description = {
            "Says whether this machine can measure, how noisy it is, how much load the generator can make here, and"
                    + " what is missing. Takes some ten seconds, and writes nothing.",
            ""
        },
        footer = {
            "",
            "Exit codes: 0 good, also where something is to be minded; 1 error.",
            "",
            "Example: ${ROOT-COMMAND-NAME} doctor"
        })
final class Doctor implements Callable<Integer> {
    private static final int NOISE_SAMPLES = 200;
    /** Above this spread of a fixed piece of work, small differences between technologies cannot be told here. */
    private static final double MAX_NOISE = 0.10;

    /** A generator and five services at their heaps' usual fill. */
    private static final long MIN_MEMORY_MB = 2_000;
    /** The store unpacks a native library of 60 MB there. */
    private static final long MIN_TEMP_MB = 100;

    private final List<String> concerns = new ArrayList<>();

    @Override
    public Integer call() throws IOException, InterruptedException {
        MachineFacts.read().forEach(Doctor::tell);
        tell("jdk", System.getProperty("java.vendor") + " " + System.getProperty("java.vm.version"));
        cores();
        memory();
        noise();
        ceiling();
        missing();
        if (concerns.isEmpty()) {
            System.out.println("fit to measure");
        } else {
            System.out.println("can measure; mind this:");
            concerns.forEach(concern -> System.out.println("- " + concern));
        }
        return 0;
    }

    private static void tell(String name, String value) {
        System.out.printf(Locale.ROOT, "%-12s %s%n", name, value);
    }

    private static void tell(String name, String format, Object... values) {
        tell(name, String.format(Locale.ROOT, format, values));
    }

    private void cores() {
        int cores = Runtime.getRuntime().availableProcessors();
        if (cores < 2) {
            concerns.add("one core: client and services take turns, and figures show that more than any technology");
        } else if (cores < 8) {
            concerns.add(cores + " cores for a generator and five services: highest throughput says little here, and"
                    + " trials with many clients may be void; read CPU per request");
        }
        double load = ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage();
        if (load >= 0) {
            tell("load", "%.1f processes ran or waited over the last minute", load);
            if (load > cores / 2.0) {
                concerns.add("other programs keep the cores busy: close them, or trust only large differences");
            }
        }
    }

    private void memory() {
        OptionalLong available = MachineFacts.availableMemoryBytes();
        if (available.isPresent()) {
            long megabytes = available.getAsLong() / 1_000_000;
            tell("available", "%d MB of memory", megabytes);
            if (megabytes < MIN_MEMORY_MB) {
                concerns.add(megabytes + " MB of memory are free: services may be swapped or killed (wanted: "
                        + MIN_MEMORY_MB + " MB)");
            }
        } else {
            concerns.add("this system does not tell memory, swapping or stolen time of processes as Linux does: those"
                    + " figures stay empty");
        }
        Path temp = Path.of(System.getProperty("java.io.tmpdir"));
        try {
            long megabytes = Files.getFileStore(temp).getUsableSpace() / 1_000_000;
            if (megabytes < MIN_TEMP_MB) {
                concerns.add(temp + " has " + megabytes + " MB free (wanted: " + MIN_TEMP_MB
                        + " MB for the store's native library)");
            }
        } catch (IOException e) {
            concerns.add(temp + " cannot be used: " + e.getMessage());
        }
    }

    private void noise() {
        MachineMood before = MachineMood.now();
        double spread = spread();
        tell(
                "noise",
                "a fixed piece of work took %.1f %% longer at its 95th percentile than at its median",
                spread * 100);
        if (spread > MAX_NOISE) {
            concerns.add("a noisy machine: close other programs, or trust only large differences");
        }
        concerns.addAll(MachineMood.now().complaintsSince(before));
    }

    private void ceiling() throws IOException, InterruptedException {
        // Ctrl-C waits until the folder is gone.
        try (Children.Hold _ = Children.hold()) {
            ceilingIn(Files.createTempDirectory("parley-doctor"));
        }
    }

    private void ceilingIn(Path logs) throws IOException, InterruptedException {
        try {
            double perSecond = Ceiling.here(Catalog.read(), logs).perSecond();
            tell("generator", "%.0f requests/s at most, against a server that does nothing", perSecond);
        } catch (LabException e) {
            concerns.add(e.getMessage());
        } finally {
            Files.deleteIfExists(logs.resolve("ceiling.log"));
            Files.deleteIfExists(logs);
        }
    }

    private void missing() {
        if (Checkout.commit().equals(Checkout.UNKNOWN)) {
            concerns.add("results will not name the commit: a distribution knows its own, and git on the PATH tells"
                    + " that of a checkout");
        }
        List<String> unbuilt = Catalog.read().unbuilt();
        if (!unbuilt.isEmpty()) {
            concerns.add("not built here: " + String.join(", ", unbuilt) + " (" + Launcher.name()
                    + " builds what it starts with)");
        }
    }

    /** Times the same arithmetic again and again: what is above the median was taken by something else. */
    private static double spread() {
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
        if (kept == 42) { // never, but the compiler cannot know, and so must do the work
            throw new IllegalStateException("arithmetic");
        }
        Arrays.sort(ns);
        double median = ns[NOISE_SAMPLES / 2];
        return ns[NOISE_SAMPLES * 95 / 100] / median - 1;
    }
}
