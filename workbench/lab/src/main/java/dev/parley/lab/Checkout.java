package dev.parley.lab;

import dev.parley.process.Packaged;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** What the checkout, or the distribution, that the workbench runs from was made of. */
public final class Checkout {
    /** What {@link #commit} is where nothing tells it. */
    public static final String UNKNOWN = ShortCommand.UNKNOWN;

    private Checkout() {}

    /**
     * The workbench's version in its checkout, with {@code -dirty} where files differ from it; in a distribution, the
     * one that it was built from; otherwise {@link #UNKNOWN}. Pages that recordings write do not count, or else one
     * recording would make the next one dirty.
     */
    public static String commit() {
        return commit(Installations.home());
    }

    static String commit(Path home) {
        return Packaged.commit(home).orElseGet(() -> commitOf(home));
    }

    /** When the checkout's last commit was made; the epoch where that is unknown. */
    public static Instant committedAt() {
        return committedAt(Installations.home());
    }

    static Instant committedAt(Path checkout) {
        String seconds = ShortCommand.said(List.of("git", "-C", checkout.toString(), "log", "-1", "--format=%ct"));
        return seconds.matches("\\d+") ? Instant.ofEpochSecond(Long.parseLong(seconds)) : Instant.EPOCH;
    }

    private static String commitOf(Path checkout) {
        String git = checkout.toString();
        String commit =
                ShortCommand.said(List.of("git", "-C", git, "describe", "--always", "--exclude=*", "--abbrev=12"));
        List<String> changes =
                new ArrayList<>(List.of("git", "-C", git, "status", "--porcelain", "--untracked-files=no"));
        changes.addAll(List.of("--", ":/", ":(top,exclude)README.md", ":(top,exclude)docs/results"));
        String changed = ShortCommand.said(changes);
        return commit.equals(UNKNOWN) || changed.isEmpty() ? commit : commit + "-dirty";
    }
}
