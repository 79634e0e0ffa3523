package dev.rpcx.internal.server;

import dev.rpcx.RunOn;
import dev.rpcx.internal.ledger.Account;
import io.netty.channel.EventLoop;

/**
 * Threads on which one connection runs, off its event loop, its handlers and what their streams and calls have to be
 * told. On virtual threads both are the same. A pool has two parts, each shared among connections: handlers wait for a
 * thread of the first part, of which there are few; what has to be told runs in the second part and never waits for a
 * handler. So a handler that keeps its thread until it has been told something does not keep that from being told.
 */
public final class ConnectionThreads {
    private final Threads threads;
    private final EventLoop loop;
    private final PoolShares.Share handlers;
    private final PoolShares.Share signals;

    public ConnectionThreads(Threads threads, EventLoop loop, Account account) {
        this.threads = threads;
        this.loop = loop;
        this.handlers = threads.handlers(loop, account);
        this.signals = threads.signals(loop, account);
    }

    /**
     * Starts a handler, now or when the pool has a thread for it. It throws what {@link Threads#run} throws; a handler
     * that has waited may be refused later instead.
     */
    public void run(RunOn.Place place, PoolShares.Task handler) {
        run(place, handlers, handler);
    }

    /**
     * Runs a signal for the subscriber or publisher of a stream, or a callback that a handler has registered. Otherwise
     * as {@link #run}.
     */
    void runSignal(RunOn.Place place, PoolShares.Task signal) {
        run(place, signals, signal);
    }

    private void run(RunOn.Place place, PoolShares.Share share, PoolShares.Task task) {
        if (Threads.isPool(place)) {
            share.run(task);
        } else {
            threads.run(loop, place, task);
        }
    }

    /**
     * Takes a handler back that has been given to {@link #run}.
     *
     * @return false if it does not wait, as it has started or is about to
     */
    boolean withdraw(RunOn.Place place, PoolShares.Task handler) {
        return Threads.isPool(place) && handlers.withdraw(handler);
    }

    /** Whether a handler waits because its own connection holds as many threads as it may, though a thread is free. */
    boolean waitsForItsOwn(RunOn.Place place, PoolShares.Task handler) {
        return Threads.isPool(place) && handlers.isBeyond(handler);
    }

    /**
     * Notes that the connection is gone; called once. What goes on counts in the shares of later connections of the
     * same address.
     */
    void connectionGone() {
        handlers.connectionGone();
        signals.connectionGone();
    }
}
