package dev.rpcx;

import io.netty.util.concurrent.FastThreadLocalThread;

/** A thread of an event loop, which may not block. Daemon: a client that nobody closed does not keep the process alive. */
final class LoopThread extends FastThreadLocalThread {
    LoopThread(Runnable task, String name) {
        super(task, name);
        setDaemon(true);
    }
}
