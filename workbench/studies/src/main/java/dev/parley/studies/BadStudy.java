package dev.parley.studies;

import java.util.List;
import java.util.stream.Collectors;

/** A file that is no study, with every mistake found in it, in the order of the file. */
public final class BadStudy extends IllegalArgumentException {
    private final List<Mistake> mistakes;

    /**
     * @param line from 1
     * @param key where in the file, such as {@code loads[1].staircase.step}; empty for the file as a whole
     * @param what the value and what was expected, such as {@code 0 (expected: 1 or more)}
     */
    public record Mistake(String file, int line, String key, String what) {
        @Override
        public String toString() {
            return file + ":" + line + ": " + (key.isEmpty() ? "" : key + ": ") + what;
        }
    }

    BadStudy(List<Mistake> mistakes) {
        super(mistakes.stream().map(Mistake::toString).collect(Collectors.joining("\n")));
        this.mistakes = List.copyOf(mistakes);
    }

    public List<Mistake> mistakes() {
        return mistakes;
    }
}
