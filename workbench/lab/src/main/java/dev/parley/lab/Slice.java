package dev.parley.lab;

import dev.parley.analysis.Warmth;
import java.util.OptionalDouble;

/**
 * What a slice of a rehearsal showed.
 *
 * @param compilingPercent compilers' share of the services' processor time; empty where it is not known
 * @param generatorPercent what the load generator's compilers took, in percent of a core; empty where it is not
 *     known
 * @param perSecond replies that were right and met the limit; 0 where there was none, and the median then means
 *     nothing
 */
record Slice(OptionalDouble compilingPercent, OptionalDouble generatorPercent, double medianMs, double perSecond) {
    boolean hasReplies() {
        return perSecond > 0;
    }

    /** Whether compilers took as little as a trial allows. Services that answered nothing show nothing. */
    boolean isQuiet() {
        return hasReplies()
                && compilingPercent.isPresent()
                && compilingPercent.getAsDouble() <= Warmth.MAX_COMPILING
                && generatorPercent.orElse(0) <= Warmth.MAX_GENERATOR_COMPILING;
    }
}
