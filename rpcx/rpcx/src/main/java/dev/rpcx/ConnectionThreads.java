package dev.rpcx;

import io.netty.channel.EventLoop;

/**
 * Where one connection has its handlers run, and what their streams and calls have to be told, off its event loop. On
 * virtual threads both are the same. A pool has two parts, each shared among connections: handlers wait for a thread of
 * the first, of which there are few, and signals never wait for a handler. So a handler that keeps its thread until it
 * has been told something does not keep that from being told.
 */
final class ConnectionThreads {
    private final Threads threads;
    private final EventLoop loop;
    private final PoolShares.Share handlers;
    private final PoolShares.Share signals;

    ConnectionThreads(Threads threads, EventLoop loop, Account account) {
        this.threads = threads;
        this.loop = loop;
        this.handlers = threads.handlers(loop, account);
        this.signals = threads.signals(loop, account);
    }

    /**
     * Begins a handler, now or when the pool has a thread for it. As {@link Threads#run}, which says what it throws;
     * one that has waited may be refused later instead.
     */
    void run(RunOn.Place place, PoolShares.Task handler) {
        run(place, handlers, handler);
    }

    /** Runs what the subscriber or publisher of a stream has to be told, or what a handler wants to be told. As {@link #run}. */
    void tell(RunOn.Place place, PoolShares.Task signal) {
        run(place, signals, signal);
    }

    private void run(RunOn.Place place, PoolShares.Share share, PoolShares.Task task) {
        if (Threads.isPool(place)) {
            share.run(task);
        } else {
            threads.run(loop, place, task);
        }
    }

    /** Takes a handler back that has been given to {@link #run}. @return false if it does not wait: it has begun, or is about to */
    boolean withdraw(RunOn.Place place, PoolShares.Task handler) {
        return Threads.isPool(place) && handlers.withdraw(handler);
    }

    /** Whether a handler that waits does so because its own connection holds as many threads as it may, and others have some left. */
    boolean waitsForItsOwn(RunOn.Place place, PoolShares.Task handler) {
        return Threads.isPool(place) && handlers.isBeyond(handler);
    }

    /** Once. What goes on counts for others of the same address. */
    void connectionGone() {
        handlers.connectionGone();
        signals.connectionGone();
    }
}
