package dev.rpcx.internal.server;

import dev.rpcx.internal.io.Loops;
import dev.rpcx.internal.io.Platform;
import io.netty.util.concurrent.Ticker;
import java.util.random.RandomGenerator;

/** What a server takes from the machine on which it runs: a {@link Platform}, and the threads for handlers. */
public interface ServerPlatform extends Platform {
    /** Platform that takes everything from the machine on which the process runs. */
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
