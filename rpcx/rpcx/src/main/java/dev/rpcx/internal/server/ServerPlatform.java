package dev.rpcx.internal.server;

import dev.rpcx.internal.io.Loops;
import dev.rpcx.internal.io.Platform;
import io.netty.util.concurrent.Ticker;
import java.util.random.RandomGenerator;

/**
 * Supplies what a server needs from its machine. Like any {@link Platform}, it supplies a clock, random numbers and
 * event loops. In addition, it supplies threads for handlers. A simulation has its own implementation.
 */
public interface ServerPlatform extends Platform {
    /** Platform of the machine on which the process runs. */
    ServerPlatform HOST = new ServerPlatform() {
        @Override
        public Loops loops(int count, String name, boolean inProcess) {
            return MACHINE.loops(count, name, inProcess);
        }

        @Override
        public Threads threads(int poolSize) {
            return new Threads(poolSize);
        }

        @Override
        public Ticker ticker() {
            return MACHINE.ticker();
        }

        @Override
        public RandomGenerator random() {
            return MACHINE.random();
        }
    };

    Threads threads(int poolSize);
}
