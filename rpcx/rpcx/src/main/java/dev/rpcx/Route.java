package dev.rpcx;

import io.netty.util.concurrent.Ticker;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** Where the calls of a proxy go: one address, or whichever of several instances is chosen for each. */
abstract class Route {
    /** Looks for another instance; a choice that gives the same one so often has no other. */
    private static final int LOOKS = 8;

    private final Client client;
    private final RetryBudget budget = new RetryBudget();
    private final @Nullable CircuitBreaker breaker;

    Route(Client client) {
        this.client = client;
        this.breaker = client.newBreaker();
    }

    /** The time that deadlines of calls are measured by. */
    final Ticker ticker() {
        return client.platform().ticker();
    }

    final RetryBudget budget() {
        return budget;
    }

    /** Not at all once the client is closed. */
    final void schedule(Runnable task, long nanos) {
        client.schedule(task, nanos);
    }

    /** A call begins. */
    final void called() {
        budget.called();
        if (breaker != null && !breaker.permits()) {
            throw new RPCXException(
                    RPCXException.Code.UNAVAILABLE,
                    this + ": the circuit is open, since most of the latest calls have failed",
                    RPCXException.Executed.NOT_EXECUTED);
        }
    }

    /** A call has ended, or could not be sent. */
    final void counted(boolean failed) {
        if (breaker != null) {
            breaker.ended(failed);
        }
    }

    /** Whether a call refused by one instance may find another. */
    abstract boolean hasOthers();

    /** As {@link #ready(int)}, another instance than this one where there is one. */
    final @Nullable ClientConnection readyElsewhere(int key, @Nullable ClientAddress than) {
        ClientConnection found = ready(key);
        for (int look = 0; look < LOOKS && than != null && found != null && found.address() == than; look++) {
            found = ready(0);
        }
        return found;
    }

    /**
     * A connection that is there, or null. On the way of every call: allocates nothing.
     *
     * @param key of the argument that decides, or 0
     */
    abstract @Nullable ClientConnection ready(int key);

    /** One that is there or will be. Ends with an exception when there is none to be had. */
    abstract CompletableFuture<ClientConnection> connect(int key);

    abstract CompletableFuture<ClassicClientConnection> connectClassic();

    /** Waits for a connection, at most until the deadline. Not on an event loop, which would wait for itself. */
    final ClientConnection await(int key, long deadlineNanos) {
        refuseBlocking();
        ClientConnection ready = ready(key);
        if (ready != null) {
            return ready;
        }
        try {
            return connect(key).get(Math.max(0, deadlineNanos - ticker().nanoTime()), TimeUnit.NANOSECONDS);
        } catch (ExecutionException e) {
            throw unreachable(e.getCause());
        } catch (TimeoutException e) {
            throw new RPCXException(
                    RPCXException.Code.DEADLINE_EXCEEDED,
                    this + ": not connected in time",
                    RPCXException.Executed.NOT_EXECUTED);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new RPCXException(
                    RPCXException.Code.CANCELLED, "the caller was interrupted", RPCXException.Executed.NOT_EXECUTED);
        }
    }

    static void refuseBlocking() {
        LoopThread.refuse("a blocking call", "an asynchronous call, or a handler or callback that runs elsewhere");
    }

    final RPCXException unreachable(@Nullable Throwable cause) {
        counted(true);
        String why = cause == null ? "no connection" : String.valueOf(cause.getMessage());
        return new RPCXException(
                RPCXException.Code.UNAVAILABLE, this + ": " + why, RPCXException.Executed.NOT_EXECUTED, cause);
    }
}
