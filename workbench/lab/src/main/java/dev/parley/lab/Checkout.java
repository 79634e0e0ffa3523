package dev.parley.lab;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The checkout that the workbench runs from. */
public final class Checkout {
    private Checkout() {}

    /**
     * The workbench's version in its checkout, with {@code -dirty} where files differ from it; {@code unknown} outside
     * of one. Pages that recordings write do not count, or else one recording would make the next one dirty.
     */
    public static String commit() {
        return commit(Installations.home());
    }

    static String commit(Path checkout) {
        String git = checkout.toString();
        String commit = ShortCommand.said(
                List.of("git", "-C", git, "describe", "--always", "--exclude=*", "--abbrev=12"));
        List<String> changes =
                new ArrayList<>(List.of("git", "-C", git, "status", "--porcelain", "--untracked-files=no"));
        changes.addAll(List.of("--", ":/", ":(top,exclude)README.md", ":(top,exclude)docs/results"));
        String changed = ShortCommand.said(changes);
        return commit.equals(ShortCommand.UNKNOWN) || changed.isEmpty() ? commit : commit + "-dirty";
    }
}
