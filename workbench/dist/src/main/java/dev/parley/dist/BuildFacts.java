package dev.parley.dist;

import dev.parley.lab.Checkout;
import dev.parley.process.Packaged;
import java.time.Instant;
import java.util.Locale;

/**
 * What a distribution was built from.
 *
 * @param committedAt date of every file in it, so that two builds of one commit are the same
 * @param system that it runs on, such as {@code linux-x64}
 * @param jdk that its runtime is linked from
 */
record BuildFacts(String version, String commit, Instant committedAt, String system, String jdk) {
    static BuildFacts here(String version) {
        return new BuildFacts(
                version,
                Checkout.commit(),
                Checkout.committedAt(),
                system(String.valueOf(System.getProperty("os.name")), String.valueOf(System.getProperty("os.arch"))),
                System.getProperty("java.vendor") + " " + System.getProperty("java.vm.version"));
    }

    /** Names a system as JDKs for download do: {@code linux-x64}, {@code linux-aarch64}, {@code macos-aarch64}. */
    static String system(String os, String architecture) {
        String name = os.toLowerCase(Locale.ROOT).startsWith("mac") ? "macos" : os.toLowerCase(Locale.ROOT);
        return name + "-" + (architecture.equals("amd64") || architecture.equals("x86_64") ? "x64" : architecture);
    }

    /** Names the distribution and its folder. */
    String name() {
        return "parley-" + version + "-" + system;
    }

    /** Returns the text of {@link Packaged#FACTS}. */
    String text() {
        return "version=" + version + "\n" + Packaged.COMMIT + "=" + commit + "\ndate=" + committedAt + "\nsystem="
                + system + "\njdk=" + jdk + "\n";
    }
}
