package dev.rpcx.internal.server;

import dev.rpcx.RunOn;
import dev.rpcx.internal.ledger.Account;
import io.netty.channel.EventLoop;

/**
 * Runs the handlers and the signals of one connection on threads other than its event loop. A signal is a task that
 * notifies a stream or a call of the connection.
 *
 * <p>The pool of platform threads has a part for handlers and a part for signals, each with its own maximum number of
 * threads. All connections share both parts. Signals have their own part because a handler may keep its thread until it
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
     * Starts a handler on a thread, at once or when the pool has a thread for it.
     *
     * <p>If the start fails at once, this method throws what {@link Threads#run} throws. If the start fails later,
     * {@link PoolShares.Task#refused} of the handler is called.
     */
    public void run(RunOn.Place place, PoolShares.Task handler) {
        run(place, handlers, handler);
    }

    /**
     * Starts a signal, as {@link #run} starts a handler, but in the part of the pool that is for signals. A signal is a
     * task that notifies a stream's subscriber or publisher, or runs a callback that a handler has registered.
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
     * @return false if the handler does not wait, because it has started or is about to start
     */
    boolean withdraw(RunOn.Place place, PoolShares.Task handler) {
        return Threads.isPool(place) && handlers.withdraw(handler);
    }

    /**
     * Returns whether a handler waits although the pool has a free thread, because its connection already holds too
     * many threads.
     */
    boolean waitsForItsOwn(RunOn.Place place, PoolShares.Task handler) {
        return Threads.isPool(place) && handlers.isBlockedByShare(handler);
    }

    /**
     * Records that the connection is gone. Called exactly once. From now on, its handlers and signals that still run or
     * wait count in the shares of connections that come later from the same address.
     */
    void connectionGone() {
        handlers.connectionGone();
        signals.connectionGone();
    }
}
