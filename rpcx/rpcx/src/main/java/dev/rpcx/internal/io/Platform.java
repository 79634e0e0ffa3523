package dev.rpcx.internal.io;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.ThreadLocalRandom;
import java.util.random.RandomGenerator;

/**
 * Provides the event loops, the time and the random numbers for a client or a server. In-process connections and their
 * calls use no other sources, so that a simulation can decide the order of all events. A client that shares its event
 * loops with other clients gets the loops from {@link SharedLoops} instead. For a server, {@code ServerPlatform} also
 * provides threads.
 */
public interface Platform {
    /** Platform with real event loops, time and random numbers. */
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
     * Returns the ticker of the event loops. The ticker counts from an arbitrary origin, so its times cannot be
     * compared with {@code System.nanoTime()}.
     */
    Ticker ticker();

    /**
     * Returns a generator of random numbers for immediate use. The generator belongs to the calling thread, and must
     * not be kept.
     */
    RandomGenerator random();
}
