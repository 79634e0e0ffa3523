package dev.rpcx.internal.server;

import dev.rpcx.RunOn;
import dev.rpcx.internal.ledger.Account;
import io.netty.channel.EventLoop;

/**
 * Runs the handlers and the signals of one connection on threads other than its event loop. A signal is a task that
 * notifies a stream or a call of the connection.
 *
 * <p>All connections share the pool of platform threads, which has two parts. The part for handlers and the part for
 * signals each have their own maximum number of threads, because a handler may keep its thread until the handler
 * receives a signal. On virtual threads, handlers and signals are treated alike.
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
     * Starts a handler on a thread, at once or when the pool has a thread for the handler.
     *
     * <p>If the start fails at once, this method throws what {@link Threads#run} throws. If the start fails later,
     * {@link PoolShares.Task#refused} of the handler is called.
     */
    public void run(RunOn.Place place, PoolShares.Task handler) {
        run(place, handlers, handler);
    }

    /**
     * Starts a signal on a thread, at once or when the pool has a thread for the signal. A signal is a task that
     * notifies a stream's subscriber or publisher, or runs a callback that a handler has registered. If the pool cannot
     * start a thread, the signal usually waits until the pool tries again: see {@link PoolShares#patient}. Any other
     * failed start has the same effect as in {@link #run}: this method throws, or {@link PoolShares.Task#refused} of
     * the signal is called.
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
     * Takes back a handler that was given to {@link #run} and still waits for a thread.
     *
     * @return false if the handler does not wait, because the handler has started or is about to start
     */
    boolean withdraw(RunOn.Place place, PoolShares.Task handler) {
        return Threads.isPool(place) && handlers.withdraw(handler);
    }

    /**
     * Returns whether a handler waits although the pool runs fewer handlers than its maximum. Usually the handler waits
     * because the share of its connection allows no more threads at the moment: see
     * {@link PoolShares.Share#isBlockedByShare}. Returns false if the handler does not run on the pool.
     */
    boolean waitsForItsOwn(RunOn.Place place, PoolShares.Task handler) {
        return Threads.isPool(place) && handlers.isBlockedByShare(handler);
    }

    /**
     * Records that the connection has closed. Called exactly once. Handlers and signals of the connection can still run
     * or wait after that. They then count in the shares of later connections from the same address.
     */
    void connectionGone() {
        handlers.connectionGone();
        signals.connectionGone();
    }
}
