package dev.rpcx.internal.server;

import dev.rpcx.RunOn;
import dev.rpcx.internal.ledger.Account;
import io.netty.channel.EventLoop;

/**
 * Runs the handlers and the signals of one connection on threads other than its event loop. A signal notifies a stream
 * or a call of the connection. On virtual threads, handlers and signals are treated alike.
 *
 * <p>A pool has two parts, and the connections share each of them. The first part has few threads, for which handlers
 * wait. Signals run in the second part, and never wait for a handler. So a handler that keeps its thread until it
 * receives a signal does not prevent that signal.
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
     * Starts a handler, now or when the pool has a thread for it. If the start fails immediately, this method throws
     * what {@link Threads#run} throws. If the start fails later, while the handler waits for a thread, the handler is
     * refused.
     */
    public void run(RunOn.Place place, PoolShares.Task handler) {
        run(place, handlers, handler);
    }

    /**
     * Runs a signal for the subscriber or publisher of a stream, or a callback that a handler has registered. It does
     * the same as {@link #run}, but uses the part of the pool that is for signals.
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
     * @return true if the handler was taken back; false if it does not wait, since it has started or is about to start
     */
    boolean withdraw(RunOn.Place place, PoolShares.Task handler) {
        return Threads.isPool(place) && handlers.withdraw(handler);
    }

    /**
     * Returns whether a handler waits although the pool has a free thread. This is so if the handler's own connection
     * already uses its share of the threads.
     */
    boolean waitsForItsOwn(RunOn.Place place, PoolShares.Task handler) {
        return Threads.isPool(place) && handlers.isBlockedByShare(handler);
    }

    /**
     * Records that the connection is gone. Called exactly once. Those of its handlers and signals that still run or
     * wait count from now on in the shares of connections that come later from the same address.
     */
    void connectionGone() {
        handlers.connectionGone();
        signals.connectionGone();
    }
}
