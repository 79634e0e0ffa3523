package dev.rpcx.internal.io;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.ThreadLocalRandom;
import java.util.random.RandomGenerator;

/**
 * Sources of nondeterminism that a client or a server takes from its machine: event loops, time and random numbers. A
 * server also takes threads from its machine, through {@code ServerPlatform}. Connections and calls use no other such
 * source. So a simulation that replaces these four sources decides every interleaving.
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
     * Returns the ticker that the loops use too. Its times count from an arbitrary origin, and cannot be compared with
     * {@code System.nanoTime()}.
     */
    Ticker ticker();

    /** Returns a generator for immediate use by the calling thread, which must not keep it. */
    RandomGenerator random();
}
