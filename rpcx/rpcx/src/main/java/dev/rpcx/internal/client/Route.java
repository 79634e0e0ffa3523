package dev.rpcx.internal.client;

import dev.rpcx.RPCXException;
import dev.rpcx.VisibleText;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.ledger.Resource;
import dev.rpcx.internal.wire.Wire;
import io.netty.util.concurrent.Ticker;
import java.lang.ref.WeakReference;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** Where the calls of a proxy go: to one address, or to one of several instances, which is chosen for each call. */
public abstract class Route {
    private final ClientCore client;
    private final RetryBudget budget = new RetryBudget();

    /** Refusal budgets by {@link ClientMethod#index}, created when an instance first refuses a call of the method. */
    private final Map<Integer, RefusalBudget> refusals = new ConcurrentHashMap<>();

    private final @Nullable CircuitBreaker breaker;

    /** Number of calls for which no thread blocks and which have no connection yet. */
    private final AtomicInteger waiting = new AtomicInteger();

    /** Latest failure to connect, with its text, which goes into the errors of calls. */
    private volatile @Nullable FailureLine failureLine;

    public Route(ClientCore client) {
        this.client = client;
        this.breaker = client.newBreaker();
    }

    /** Returns the clock by which the deadlines of calls are measured. */
    final Ticker ticker() {
        return client.platform().ticker();
    }

    public final RetryBudget budget() {
        return budget;
    }

    /**
     * Returns the budget for retries of calls that an instance has refused. Each method has a budget of its own, which
     * is separate from {@code budget()}.
     *
     * @param method {@link ClientMethod#index} of the method
     */
    final RefusalBudget refusals(int method) {
        return refusals.computeIfAbsent(method, first -> new RefusalBudget(ticker()));
    }

    /**
     * Logs that a one-way call has failed. The text of the failure is not logged, since a peer may have written it.
     * Thread-safe.
     */
    final void oneWayFailed(Object method, Throwable thrown) {
        client.oneWayFailed("a one-way call of " + method + " at " + this, thrown);
    }

    /**
     * Schedules a task that can be cancelled.
     *
     * @return null if the client is closed and the task will not run
     */
    final @Nullable Future<?> timer(Runnable task, long nanos) {
        return client.timer(task, nanos);
    }

    /**
     * Creates the charge for the request of a call that waits for a connection. Nothing is charged yet: register the
     * release first and charge the bytes afterwards, so that an error in between leaves nothing charged.
     */
    final WaitingBytes waitingBytes() {
        return new WaitingBytes(this);
    }

    /**
     * Charge for the bytes of a waiting call. The value is 0 at first, then the number of bytes, and {@link #ENDED}
     * after the release.
     */
    static final class WaitingBytes extends AtomicInteger implements BiConsumer<Object, Throwable> {
        private static final int ENDED = -1;

        private final Route route;
        private final Account account;

        WaitingBytes(Route route) {
            this.route = route;
            this.account = route.client.waiting;
        }

        /**
         * Charges {@code bytes} until {@code giveBack} is called. If {@code giveBack} has been called already, nothing
         * stays charged.
         *
         * @throws RPCXException {@link RPCXException.Code#OVERLOADED} if the waiting requests of this client hold too
         *     many bytes
         */
        void hold(int bytes) {
            if (!account.tryCharge(Resource.REQUEST_BYTES, bytes)) {
                throw RPCXException.refused(
                        RPCXException.Code.OVERLOADED,
                        route + ": too many bytes of requests wait for a connection"
                                + " (expected: fewer large ones at once)");
            }
            if (!compareAndSet(0, bytes)) {
                account.release(Resource.REQUEST_BYTES, bytes);
            }
        }

        @Override
        public void accept(@Nullable Object value, @Nullable Throwable thrown) {
            giveBack();
        }

        /** Releases the charge. A second call does nothing. */
        void giveBack() {
            int held = getAndSet(ENDED);
            if (held > 0) {
                account.release(Resource.REQUEST_BYTES, held);
            }
        }
    }

    /** Makes the end of the client wait for the end of this call, which has been accepted. */
    final void awaitOnClose(CallFuture<?> call) {
        client.awaitOnClose(call);
    }

    /**
     * Asks the circuit breaker for a permit, as {@link #calledAgain} does, and adds a tenth of a retry to the retry
     * budget.
     */
    final long called() {
        long permit = calledAgain();
        budget.called();
        return permit;
    }

    /**
     * Asks the circuit breaker for a permit. Called directly only for a repeated call, such as the second call of a
     * hedge.
     *
     * @return the permit, or {@link CircuitBreaker#PERMITTED} if there is no circuit breaker; the caller has to pass
     *     the permit to {@link #recordOutcome} with the outcome of the call, and to {@link #releasePermit} in any case
     */
    public final long calledAgain() {
        if (breaker == null) {
            return CircuitBreaker.PERMITTED;
        }
        long permit = breaker.permit();
        if (permit == CircuitBreaker.REFUSED) {
            throw RPCXException.refused(
                    RPCXException.Code.UNAVAILABLE,
                    this + ": the circuit is open, since most of the latest calls have failed");
        }
        return permit;
    }

    /**
     * Records how a call has ended, or that the call could not be sent. Only the last attempt of a call is recorded. If
     * the call is a trial and sends a stream, the trial is recorded as answered when the server first gives credit.
     */
    public final void recordOutcome(Health.Outcome outcome, long permit) {
        if (breaker != null) {
            breaker.ended(outcome, permit);
        }
    }

    /**
     * Whether the service has an instance other than the one that has refused the call.
     *
     * @param used instance that has refused the call; null if that is not known
     */
    public abstract boolean hasOthers(@Nullable ClientAddress used);

    /**
     * Called when a call has ended, in whatever way. If the call was a trial of the circuit but was never sent, the
     * next call becomes the trial. In any other case this method does nothing.
     */
    final void releasePermit(long permit) {
        if (permit != CircuitBreaker.PERMITTED) {
            recordOutcome(Health.Outcome.UNKNOWN, permit);
        }
    }

    /**
     * Whether an instance other than {@code asked} is connected now, and is healthy or free for a trial. May look at
     * all instances.
     */
    boolean hasFreeBeside(ClientAddress asked) {
        return false;
    }

    /**
     * Returns an open connection that is not full, to an instance that is not in {@code asked} and is healthy or free
     * for a trial. If the instance is free for a trial, the caller's call becomes its trial.
     *
     * @return null if there is no such connection
     */
    public abstract @Nullable ClientConnection readyBeside(List<ClientAddress> asked);

    /** Returns a connection as {@link #ready(int)} does, but of an instance other than {@code than} if there is one. */
    final @Nullable ClientConnection readyElsewhere(int key, @Nullable ClientAddress than) {
        ClientConnection other = than == null ? null : readyBeside(List.of(than));
        return other == null ? ready(key) : other;
    }

    /**
     * Returns an existing connection for a call; null if there is none. Runs for every call, so it allocates nothing.
     *
     * @param key number that {@code RouteKey} computes from the argument that decides which instance is called; 0 if no
     *     argument decides
     */
    public abstract @Nullable ClientConnection ready(int key);

    /**
     * Returns a connection that is open or being opened. The result ends with an exception if the connection cannot be
     * opened.
     */
    public abstract PendingConnection<ClientConnection> connect(int key);

    public abstract PendingConnection<ClassicClientConnection> connectClassic();

    /** Waits for a connection, at most until the deadline. Throws on an event loop, which must not block. */
    public final ClientConnection await(int key, long deadlineNanos, AnswerTimes times, long permit) {
        refuseBlocking();
        ClientConnection ready = ready(key);
        while (ready == null) {
            ClientConnection connected = awaitOne(key, deadlineNanos, times, permit);
            ready = taken(key, connected);
        }
        return ready;
    }

    /**
     * Returns the connection for a call that has waited for {@code connected}. If other calls have filled
     * {@code connected}, returns another connection, or a full one, which refuses the call.
     *
     * @return null if the call has to wait for one more connection
     */
    private @Nullable ClientConnection taken(int key, ClientConnection connected) {
        return connected.isFull() ? ready(key) : connected;
    }

    private ClientConnection awaitOne(int key, long deadlineNanos, AnswerTimes times, long permit) {
        PendingConnection<ClientConnection> pending = connect(key);
        Blocked<ClientConnection> caller = new Blocked<>();
        if (!pending.add(caller)) {
            pending.whenComplete(caller::ended);
        }
        long left = deadlineNanos - ticker().nanoTime();
        try {
            return caller.get(Math.max(0, left), TimeUnit.NANOSECONDS);
        } catch (ExecutionException e) {
            ClientConnection instead = pending.instead();
            if (instead != null) {
                return instead;
            }
            RPCXException unreachable = unreachable(e.getCause());
            recordOutcome(Health.Outcome.of(unreachable), permit);
            throw unreachable;
        } catch (TimeoutException e) {
            leave(pending, caller);
            RPCXException late = late();
            recordOutcome(Health.Outcome.of(late, times, left, 0), permit);
            throw late;
        } catch (InterruptedException e) {
            leave(pending, caller);
            Thread.currentThread().interrupt();
            throw interrupted();
        }
    }

    /** A thread that waits for a connection. */
    private static final class Blocked<C> extends CompletableFuture<C> implements PendingConnection.Waiter<C> {
        @Override
        public void ended(@Nullable C connected, @Nullable Throwable failure) {
            if (connected != null) {
                complete(connected);
            } else {
                completeExceptionally(Objects.requireNonNull(failure));
            }
        }
    }

    /** Removes a call that waits no longer. The call may have been notified in the meantime. */
    private static <C> void leave(PendingConnection<C> pending, PendingConnection.Waiter<C> call) {
        if (pending.remove(call)) {
            pending.abandon();
        }
    }

    /**
     * Waits for a connection without blocking. {@code then} is called with the connection, or with an error if there is
     * none by the deadline or the wait fails. After {@link Wait#giveUp} has returned true, {@code then} is never
     * called. If {@code Wire.MAX_SLOTS} calls wait already, the call is refused as {@code OVERLOADED}.
     *
     * @return the wait; null if {@code then} has been called already
     */
    public final @Nullable Wait await(
            int key, long deadlineNanos, AnswerTimes times, long permit, ConnectionCallback<ClientConnection> then) {
        Source<ClientConnection> source = new Source<>() {
            @Override
            public PendingConnection<ClientConnection> connect() {
                return Route.this.connect(key);
            }

            @Override
            public @Nullable ClientConnection taken(ClientConnection connected) {
                return Route.this.taken(key, connected);
            }
        };
        return await(source, deadlineNanos, times, permit, then);
    }

    /**
     * Waits for a connection on the classic wire without blocking.
     *
     * @return the wait; null if {@code then} has been called already
     */
    final @Nullable Wait awaitClassic(
            long deadlineNanos, AnswerTimes times, long permit, ConnectionCallback<ClassicClientConnection> then) {
        return await(this::connectClassic, deadlineNanos, times, permit, then);
    }

    /** Source of the connections that calls get. */
    @FunctionalInterface
    private interface Source<C> {
        /** Returns a connection that is established or being attempted. */
        PendingConnection<C> connect();

        /**
         * Returns the connection for a call whose wait has ended with {@code connected}; null if the call has to wait
         * for one more connection.
         */
        default @Nullable C taken(C connected) {
            return connected;
        }
    }

    private <C> @Nullable Wait await(
            Source<C> source, long deadlineNanos, AnswerTimes times, long permit, ConnectionCallback<C> then) {
        // connect() may throw, so the call is counted as waiting only afterwards
        PendingConnection<C> pending = source.connect();
        Waiting<C> call = new Waiting<>(source, pending, deadlineNanos, times, permit, then);
        call.waitFor(pending);
        if (call.isOver()) {
            return null;
        }
        if (!call.countWaiting()) {
            call.refuse();
            return null;
        }
        // the timer also ends a call that could not be notified for lack of memory
        call.startTimer();
        return call;
    }

    /** Returns the number of calls that wait for a connection, and for which no thread blocks. For tests. */
    public final int waitingCalls() {
        return waiting.get();
    }

    /** The wait of a call for a connection. */
    public interface Wait {
        /**
         * Ends the wait. Thread-safe.
         *
         * @return true if the callback will never be called; false if it has been called or is about to be
         */
        boolean giveUp();

        /** Whether the wait has ended: with a connection, with an error, or by {@code giveUp}. Thread-safe. */
        boolean isOver();
    }

    /** A call that waits for a connection without blocking a thread. */
    private final class Waiting<C> implements PendingConnection.Waiter<C>, Wait, Runnable {
        private final Source<C> source;
        private final long deadlineNanos;
        private final long givenNanos;
        private final AnswerTimes times;
        private final long permit;
        private volatile PendingConnection<C> pending;

        // then, timer, isOver and isCounted are guarded by this
        /** Callback of the call; null when the wait has ended. */
        private @Nullable ConnectionCallback<C> then;

        private @Nullable Future<?> timer;
        private boolean isOver;

        /** Whether the call is counted in {@link #waiting}. */
        private boolean isCounted;

        Waiting(
                Source<C> source,
                PendingConnection<C> pending,
                long deadlineNanos,
                AnswerTimes times,
                long permit,
                ConnectionCallback<C> then) {
            this.source = source;
            this.pending = pending;
            this.deadlineNanos = deadlineNanos;
            this.givenNanos = deadlineNanos - ticker().nanoTime();
            this.times = times;
            this.permit = permit;
            this.then = then;
        }

        /**
         * Waits for {@code next}. If {@code next} has ended already, its result is handled immediately. A call whose
         * wait has ended does not wait for {@code next}.
         */
        void waitFor(PendingConnection<C> next) {
            pending = next;
            if (!next.add(this)) {
                next.whenComplete(this::ended);
            } else if (isOver() && next.remove(this)) {
                next.abandon();
            }
        }

        /**
         * Counts the call as waiting, unless its wait has ended. Here and in {@link #stopCounting}, no method may be
         * called between the change of the count and the store of {@code isCounted}: it could throw if the stack is
         * exhausted.
         *
         * @return false if too many calls wait
         */
        synchronized boolean countWaiting() {
            if (isOver) {
                return true;
            }
            int all = waiting.incrementAndGet();
            isCounted = true;
            return all <= Wire.MAX_SLOTS;
        }

        /** Refuses the call, since too many calls wait. */
        void refuse() {
            RPCXException refused = RPCXException.refused(
                    RPCXException.Code.OVERLOADED,
                    Route.this + ": " + Wire.MAX_SLOTS + " calls wait for a connection (expected: fewer)");
            leave(pending, this);
            // this also ends the wait if the call is about to wait for another connection
            end(null, refused);
        }

        @Override
        public synchronized boolean isOver() {
            return isOver;
        }

        private synchronized void stopCounting() {
            if (isCounted) {
                waiting.decrementAndGet();
                isCounted = false;
            }
        }

        /** Sets the timer that ends the wait at the deadline. The wait may have ended in the meantime. */
        void startTimer() {
            Future<?> started = client.timer(this, Math.max(0, deadlineNanos - ticker().nanoTime()));
            if (started == null) {
                // without a timer nobody would end the wait at the deadline
                if (pending.remove(this)) {
                    pending.abandon();
                    ended(null, new IllegalStateException("the client is closed"));
                }
                return;
            }
            boolean isLate;
            synchronized (this) {
                isLate = isOver;
                timer = started;
            }
            if (isLate) {
                started.cancel(false);
            }
        }

        /**
         * Ends the wait because the call's time is over. Also stops counting a call whose notification has failed
         * halfway.
         */
        @Override
        public void run() {
            RPCXException late = late();
            leave(pending, this);
            endFailed(late);
            stopCounting();
        }

        /**
         * Sets {@code isOver} first, so that a thread that is about to wait for another connection sees that the wait
         * has ended.
         */
        @Override
        public boolean giveUp() {
            boolean isFirst = over() != null;
            leave(pending, this);
            return isFirst;
        }

        /**
         * If the wait has failed, the error for the call is created before {@code isOver} is set. If there is no memory
         * for the error, the timer ends the wait later.
         */
        @Override
        public void ended(@Nullable C connected, @Nullable Throwable failure) {
            C found = connected == null ? pending.instead() : connected;
            if (found == null) {
                endFailed(unreachable(failure));
                return;
            }
            C taken = source.taken(found);
            if (taken == null) {
                waitFor(source.connect());
            } else {
                end(taken, null);
            }
        }

        /** Ends the wait with a failure, and records the failure. Does nothing if the wait has ended before. */
        private void endFailed(RPCXException failure) {
            ConnectionCallback<C> callback = over();
            if (callback == null) {
                return;
            }
            try {
                recordOutcome(Health.Outcome.of(failure, times, givenNanos, 0), permit);
            } finally {
                callback.ended(null, failure);
            }
        }

        private void end(@Nullable C connected, @Nullable RPCXException failure) {
            ConnectionCallback<C> callback = over();
            if (callback != null) {
                callback.ended(connected, failure);
            }
        }

        /**
         * Ends the wait.
         *
         * @return the callback, for the first caller of this method; null for later callers
         */
        private @Nullable ConnectionCallback<C> over() {
            Future<?> started;
            ConnectionCallback<C> callback;
            synchronized (this) {
                isOver = true;
                started = timer;
                callback = then;
                then = null;
            }
            stopCounting();
            if (started != null) {
                started.cancel(false);
            }
            return callback;
        }
    }

    /** Callback of a call that waits for a connection. Called at most once. Exactly one argument is null. */
    public interface ConnectionCallback<C> {
        void ended(@Nullable C connected, @Nullable RPCXException failure);
    }

    /** Throws if the calling thread has been interrupted: it could not wait for the reply. */
    static void refuseInterrupted() {
        if (Thread.currentThread().isInterrupted()) {
            throw interrupted();
        }
    }

    /**
     * Blocks until the call has ended. Usually the event loop ends the call at its deadline. If the loop is held up,
     * the calling thread cancels the call {@code ClientCall.MARGIN_NANOS} after the deadline.
     */
    public final <T> T await(CallFuture<T> call, long deadlineNanos) {
        try {
            long left = deadlineNanos - ticker().nanoTime() + ClientCall.MARGIN_NANOS;
            return call.get(Math.max(0, left), TimeUnit.NANOSECONDS);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof RPCXException known ? known : new IllegalStateException(e.getCause());
        } catch (TimeoutException e) {
            call.cancel(true);
            throw LocalFailure.asPublicException(ClientCall.unheardError());
        } catch (InterruptedException e) {
            call.cancel(true);
            Thread.currentThread().interrupt();
            throw ClientCall.interrupted();
        }
    }

    static RPCXException interrupted() {
        return RPCXException.refused(RPCXException.Code.CANCELLED, "the caller was interrupted");
    }

    static void refuseBlocking() {
        LoopThread.refuseOnLoop(
                "a blocking call", "an asynchronous call, or a handler or callback that runs elsewhere");
    }

    private RPCXException late() {
        return RPCXException.refused(RPCXException.Code.DEADLINE_EXCEEDED, this + ": not connected in time");
    }

    private RPCXException unreachable(@Nullable Throwable cause) {
        FailureLine said = cause == null ? null : line(cause);
        String why = said == null ? "no connection" : said.line;
        if (client.isClosed()) {
            // when the client is closed, the failure of a connection does not matter to the caller
            why = "the client is closed";
        }
        if (LocalFailure.isNoRoom(cause)) {
            // this side has run out of memory, which says nothing about the service
            return LocalFailure.noRoom(this + ": " + why, RPCXException.Executed.NOT_EXECUTED);
        }
        return new RPCXException(
                RPCXException.Code.UNAVAILABLE,
                this + ": " + why,
                RPCXException.Executed.NOT_EXECUTED,
                said != null && said.isVisible ? cause : null);
    }

    /**
     * Returns the text of a failure as one line of visible characters, since a peer may have written the text. The line
     * is cached: all calls that wait for the same connection get the same failure.
     */
    private FailureLine line(Throwable cause) {
        FailureLine before = failureLine;
        if (before != null && before.refersTo(cause)) {
            return before;
        }
        FailureLine made = new FailureLine(cause);
        failureLine = made;
        return made;
    }

    /** A failure, to which this object has a weak reference, and the failure's text as one line. */
    private static final class FailureLine extends WeakReference<Throwable> {
        private final String line;

        /**
         * Whether the complete text of the failure is visible. Only then do the errors of calls have the failure as
         * their cause.
         */
        private final boolean isVisible;

        FailureLine(Throwable failure) {
            super(failure);
            this.line = VisibleText.line(ThrowableText.message(failure), ThrowableText.MAX_WHY);
            this.isVisible = VisibleText.isOf(failure);
        }
    }

    /**
     * Returns the name of the route for the errors of calls. Each error copies the name, so it is short, however many
     * instances there are.
     */
    @Override
    public abstract String toString();
}
