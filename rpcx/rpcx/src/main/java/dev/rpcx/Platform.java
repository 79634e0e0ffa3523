package dev.rpcx;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.ThreadLocalRandom;
import java.util.random.RandomGenerator;

/**
 * What a client or a server takes from the machine it runs on: event loops, time and chance; a server also the threads
 * of {@code ServerPlatform}. Nothing else of that kind is used on connections and calls, so that a simulation that
 * stands in for these four decides every interleaving.
 */
interface Platform {
    /** The machine itself. */
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
     * The same as that of the loops. Its times count from its own beginning: they do not compare with
     * {@code System.nanoTime()}.
     */
    Ticker ticker();

    /** For this thread, now: not to be kept. */
    RandomGenerator random();
}
