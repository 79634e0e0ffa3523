package dev.rpcx.internal.io;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.ThreadLocalRandom;
import java.util.random.RandomGenerator;

/**
 * The sources of nondeterminism of a client or a server: event loops, time and random numbers, and for a server also
 * threads, through {@code ServerPlatform}. Connections and calls use no others, so that a simulation can decide every
 * interleaving.
 */
public interface Platform {
    /** Platform of the real machine. */
    Platform MACHINE = new Platform() {
        @Override
        public Loops loops(int count, String name, boolean inProcess) {
            return new Loops(count, name, inProcess);
        }

        @Override
        public Ticker ticker() {
            return Ticker.systemTicker();
        }

        @Override
        public RandomGenerator random() {
            return ThreadLocalRandom.current();
        }
    };

    Loops loops(int count, String name, boolean inProcess);

    /**
     * Returns the ticker of the loops. Its origin is arbitrary: its times cannot be compared with
     * {@code System.nanoTime()}.
     */
    Ticker ticker();

    /** Returns a generator for immediate use by the calling thread, which must not keep it. */
    RandomGenerator random();
}
