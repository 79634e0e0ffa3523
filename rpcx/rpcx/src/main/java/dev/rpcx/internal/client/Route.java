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

/**
 * Gets a connection for each call of a proxy. The subclass {@link ClientAddress} connects to one address. The subclass
 * {@link ClientCluster} connects to the instances of a service, and chooses one of them for each call.
 */
public abstract class Route {
    private final ClientCore client;
    private final RetryBudget budget = new RetryBudget();

    /**
     * Budgets for retries of refused calls, one for each method. The key is the method's {@link ClientMethod#index}. A
     * budget is created when an instance first refuses a call of the method, on any thread.
     */
    private final Map<Integer, RefusalBudget> refusals = new ConcurrentHashMap<>();

    private final @Nullable CircuitBreaker breaker;

    /** Number of calls that wait for a connection without blocking a thread. Any thread changes it. */
    private final AtomicInteger waiting = new AtomicInteger();

    /**
     * Text of the latest failure to connect, which the errors of calls contain; null until a call first gets an error
     * with such a text. Any thread stores and reads it.
     */
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
     * Returns the budget for retries of one method after an instance has refused an attempt, see
     * {@link Health.Outcome#REFUSED}. A retry after any other failed attempt uses {@link #budget()} if the attempt was
     * sent, and otherwise uses no budget.
     *
     * @param method {@link ClientMethod#index} of the method
     */
    final RefusalBudget refusals(int method) {
        return refusals.computeIfAbsent(method, first -> new RefusalBudget(ticker()));
    }

    /**
     * Logs that a one-way call has failed. The text of the failure is left out of the log, since a peer may have
     * written the text. This method is thread-safe.
     */
    final void oneWayFailed(Object method, Throwable thrown) {
        client.oneWayFailed("a one-way call of " + method + " at " + this, thrown);
    }

    /**
     * Runs a task on an event loop after {@code nanos} nanoseconds, unless the returned future is cancelled or the
     * event loops end before.
     *
     * @return null if the client is closed; the task then never runs
     */
    final @Nullable Future<?> timer(Runnable task, long nanos) {
        return client.timer(task, nanos);
    }

    /**
     * Creates a charge for the request of a call that waits for a connection. Nothing is charged until
     * {@link WaitingBytes#hold} is called. Register {@link WaitingBytes#giveBack} for the end of the call first, and
     * call {@code hold} afterwards. In the other order, an error in between would leave the bytes charged.
     */
    final WaitingBytes waitingBytes() {
        return new WaitingBytes(this);
    }

    /**
     * Charges the bytes of a request to the client's account while the request's call waits for a connection. The
     * integer that this object holds is the number of bytes that are charged: 0 before {@link #hold}, and
     * {@link #ENDED} after {@link #giveBack}. The thread that makes the call wait calls {@code hold}. Any thread that
     * ends the call or the wait calls {@code giveBack}, possibly at the same time. Both methods change the integer in
     * one atomic step, so the bytes are released exactly once: by {@code hold} if {@code giveBack} came first,
     * otherwise by {@code giveBack}.
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
         * Charges {@code bytes} to the client's account until {@link #giveBack} is called. If {@code giveBack} has been
         * called already, this method releases the charge again at once.
         *
         * @throws RPCXException with {@link RPCXException.Code#OVERLOADED} if this client's requests, waiting or on
         *     connections, would hold too many bytes
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

        /** Releases the bytes that are charged. A second call does nothing. */
        void giveBack() {
            int held = getAndSet(ENDED);
            if (held > 0) {
                account.release(Resource.REQUEST_BYTES, held);
            }
        }
    }

    /** Makes the client wait for the end of {@code call} when the client is closed. */
    final void awaitOnClose(CallFuture<?> call) {
        client.awaitOnClose(call);
    }

    /**
     * Asks the circuit breaker for a permit for a new call, and adds a tenth of a retry to the retry budget. If the
     * circuit breaker refuses the call, this method throws, and adds nothing. For a repeated call, {@link #calledAgain}
     * is used instead.
     *
     * @return permit, as described at {@link #calledAgain}
     */
    final long called() {
        long permit = calledAgain();
        budget.called();
        return permit;
    }

    /**
     * Asks the circuit breaker for a permit for a call, and throws if the circuit breaker refuses the call. Other
     * classes call this method only for a repeated call, such as the second call of a {@link Hedge}. For a new call,
     * they call {@link #called}.
     *
     * @return the permit; {@link CircuitBreaker#PERMITTED} if the circuit is closed or there is no circuit breaker. The
     *     caller passes the permit to {@link #recordOutcome} with the call's outcome. When the call ends, in whatever
     *     way, the caller passes the permit to {@link #releasePermit}.
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
     * Reports to the circuit breaker how the last attempt of a call has ended, or that the call has got no connection.
     * Earlier attempts are not reported. Some calls are reported before they end:
     *
     * <ul>
     *   <li>If the result of a call is a stream, the call is reported as answered when the service first answers. If
     *       the call fails later, the failure is usually reported too.
     *   <li>If a trial sends a stream, the trial is reported as answered when the server first asks for items of the
     *       stream. A trial is a call by which the circuit breaker tests the service.
     * </ul>
     */
    public final void recordOutcome(Health.Outcome outcome, long permit) {
        if (breaker != null) {
            breaker.ended(outcome, permit);
        }
    }

    /**
     * Returns whether the service has an instance other than {@code used}.
     *
     * @param used instance at which the call has failed; null if that instance is not known. The result is then whether
     *     there are at least two instances.
     */
    public abstract boolean hasOthers(@Nullable ClientAddress used);

    /**
     * Releases the permit of a call that has ended, with a result or an error. The release matters only if the call was
     * a trial, by which the circuit breaker tests the service. If the trial has not shown whether the service works,
     * the next call becomes a trial.
     */
    final void releasePermit(long permit) {
        if (permit != CircuitBreaker.PERMITTED) {
            recordOutcome(Health.Outcome.UNKNOWN, permit);
        }
    }

    /**
     * Returns whether an instance other than {@code asked} is connected, and is either healthy, or due for a trial call
     * after failures. The connections of such an instance can be full. This method can be slow, since it looks at all
     * instances if necessary.
     */
    boolean hasFreeBeside(ClientAddress asked) {
        return false;
    }

    /** Returns any open connection, for a look at what its server lists and not for a call; null if there is none. */
    @Nullable
    ClientConnection anyOpen() {
        return null;
    }

    /**
     * Returns an open connection with room for a call, to an instance that is not in {@code asked}. The instance is
     * either healthy, or due for a trial call after failures. In the second case, the caller's call becomes the trial
     * call.
     *
     * @return null if there is no such connection
     */
    public abstract @Nullable ClientConnection readyBeside(List<ClientAddress> asked);

    /**
     * Returns a connection for a call, to an instance other than {@code than} if possible.
     *
     * @param key as for {@link #ready(int)}
     * @param than instance to avoid; null for none
     * @return null if no instance has a connection for the call
     */
    final @Nullable ClientConnection readyElsewhere(int key, @Nullable ClientAddress than) {
        ClientConnection other = than == null ? null : readyBeside(List.of(than));
        return other == null ? ready(key) : other;
    }

    /**
     * Returns an existing connection for a call. The connection can be full. This method runs for each call, so
     * implementations must not allocate memory, unless they begin to connect.
     *
     * @param key number that {@link RouteKey} has computed from an argument of the call; 0 if no argument selects the
     *     instance. {@code Choice.CONSISTENT_HASH} selects the instance by this number
     * @return null if the call has to wait for a connection
     */
    public abstract @Nullable ClientConnection ready(int key);

    /**
     * Returns a future of a connection. A call can wait for this future. The future can have completed already, with an
     * open connection or with an exception. If no connection can be opened, the future ends with an exception.
     *
     * @param key as for {@link #ready(int)}
     */
    public abstract PendingConnection<ClientConnection> connect(int key);

    public abstract PendingConnection<ClassicClientConnection> connectClassic();

    /**
     * Blocks the calling thread until the route has a connection for a call, at most until the deadline. This method
     * throws if there is no connection by the deadline, or if the wait fails or is interrupted. On an event loop, which
     * must not block, this method throws at once.
     */
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
     * Returns the connection for a call that has waited until {@code connected} was open. If other calls have already
     * filled {@code connected}, returns the connection that {@link #ready(int)} chooses. If all connections are full,
     * the result can be a full connection, even {@code connected} itself. A full connection refuses the call.
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
            stopWaiting(pending, caller);
            RPCXException late = late();
            recordOutcome(Health.Outcome.of(late, times, left, 0), permit);
            throw late;
        } catch (InterruptedException e) {
            stopWaiting(pending, caller);
            Thread.currentThread().interrupt();
            throw ClientCallErrors.interrupted(RPCXException.Executed.NOT_EXECUTED);
        }
    }

    /** Future on which a thread blocks while the thread waits for a connection. */
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

    /**
     * Ends the wait of a call: removes the call from the calls that wait for {@code pending}, and calls
     * {@link PendingConnection#abandon}. Does nothing if {@code pending} has already called
     * {@link PendingConnection.Waiter#ended} for the call, or is about to.
     */
    private static <C> void stopWaiting(PendingConnection<C> pending, PendingConnection.Waiter<C> call) {
        if (pending.remove(call)) {
            pending.abandon();
        }
    }

    /**
     * Calls {@code then} with a connection as soon as the route has one, without blocking the thread. If there is no
     * connection by the deadline, or the wait fails, {@code then} is called with an error. If {@code Wire.MAX_SLOTS}
     * calls wait already, {@code then} is called at once, with the error {@code OVERLOADED}.
     *
     * @return object by which the caller can end the wait early; null if {@code then} has been called already or is
     *     about to be called
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
     * Calls {@code then} with a connection on the classic wire as soon as the route has one, without blocking the
     * thread. If the wait fails, {@code then} is called with an error.
     *
     * @return object by which the caller can end the wait early; null if {@code then} has been called already or is
     *     about to be called
     */
    final @Nullable Wait awaitClassic(
            long deadlineNanos, AnswerTimes times, long permit, ConnectionCallback<ClassicClientConnection> then) {
        return await(this::connectClassic, deadlineNanos, times, permit, then);
    }

    /** Provides connections, on the native or the classic wire, to calls that wait for a connection. */
    @FunctionalInterface
    private interface Source<C> {
        /** Returns the future of a connection, as {@link Route#connect} does. */
        PendingConnection<C> connect();

        /**
         * Returns the connection for a call that has waited for {@code connected}. The result can be a different
         * connection if other calls have already taken all the room in {@code connected}.
         *
         * @return null if the call has to wait for one more connection
         */
        default @Nullable C taken(C connected) {
            return connected;
        }
    }

    private <C> @Nullable Wait await(
            Source<C> source, long deadlineNanos, AnswerTimes times, long permit, ConnectionCallback<C> then) {
        // the call is counted as waiting only after connect(), since connect() can throw
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
        // this timer ends the call even if there was no memory to notify the call of its connection
        call.startTimer();
        return call;
    }

    /** Returns the number of calls that wait for a connection without blocking a thread. Only tests use this method. */
    public final int waitingCalls() {
        return waiting.get();
    }

    /** One call's wait for a connection. The caller can end the wait early by {@link #giveUp}. */
    public interface Wait {
        /**
         * Ends the call's wait for a connection, unless that wait has ended already. This method is thread-safe.
         *
         * @return true if the {@link ConnectionCallback} of the wait will never be called; false if it has been called
         *     or is about to be called, or if an earlier call of this method has returned true
         */
        boolean giveUp();

        /**
         * Returns whether the call's wait for a connection has ended: with a connection, with an error, or by
         * {@link #giveUp}. This method is thread-safe.
         */
        boolean isOver();
    }

    /** A call that waits for a connection without blocking a thread. */
    private final class Waiting<C> implements PendingConnection.Waiter<C>, Wait, Runnable {
        private final Source<C> source;
        private final long deadlineNanos;
        private final long givenNanos;
        private final AnswerTimes times;
        private final long permit;

        /**
         * Connection, open or being opened, for which this call waits. The thread that makes the call wait stores this
         * field. Any thread that ends the wait reads it, see {@link #giveUp}.
         */
        private volatile PendingConnection<C> pending;

        // the fields then, timer, isOver and isCounted are guarded by this
        /** Callback that gets the connection or an error; null when the wait has ended. */
        private @Nullable ConnectionCallback<C> then;

        private @Nullable Future<?> timer;
        private boolean isOver;

        /** Whether the number {@link Route#waiting} includes this waiting call. */
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
         * Makes this call wait for {@code next}, a connection that is open or being opened. If {@code next} has
         * completed already, this method handles the result of {@code next} immediately. The call may have stopped
         * waiting in the meantime, for example because its deadline has passed. In that case, this method removes the
         * call from {@code next} again. Tested by
         * {@code WaitingCallsTest.aCallThatIsCancelledAsItGoesOnToTheNextWaitIsOver}.
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
         * Adds one to {@link Route#waiting} for this waiting call, unless the call no longer waits. Between the change
         * of that number and the store of {@code isCounted}, this method and {@link #stopCounting} must not invoke
         * another method, since an invocation could throw if the stack is exhausted.
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

        /**
         * Ends the wait with an error, since too many calls wait for a connection. First marks the wait as ended, and
         * then reads {@code pending} and removes the call there. {@link #giveUp} explains this order.
         */
        void refuse() {
            RPCXException refused = RPCXException.refused(
                    RPCXException.Code.OVERLOADED,
                    Route.this + ": " + Wire.MAX_SLOTS + " calls wait for a connection (expected: fewer)");
            ConnectionCallback<C> callback = over();
            try {
                stopWaiting(pending, this);
            } finally {
                if (callback != null) {
                    callback.ended(null, refused);
                }
            }
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

        /**
         * Starts the timer that ends this call's wait for a connection at the call's deadline. If the wait has ended
         * already, the timer is cancelled. If the client is closed, the wait ends at once.
         */
        void startTimer() {
            Future<?> started = client.timer(this, Math.max(0, deadlineNanos - ticker().nanoTime()));
            if (started == null) {
                // without a timer nobody would end the wait at the deadline
                stop(unreachable(new IllegalStateException("the client is closed")));
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
         * Ends the wait because the deadline has passed. As in {@link #ended}, the error for the call is created before
         * the wait is marked as ended. The other steps are those of {@link #stop}. If an earlier try to end the wait
         * has failed halfway, the call can still be counted as waiting. This method then also stops counting the call.
         * Tested by {@code WaitingCallsTest.aCallWhoseTimeIsOverAsItGoesOnToTheNextWaitIsOver}.
         */
        @Override
        public void run() {
            stop(late());
            stopCounting();
        }

        /**
         * Ends the wait with an error from outside of the connection that the call waits for. First marks the wait as
         * ended, and then reads {@code pending} and removes the call there. {@link #giveUp} explains this order.
         */
        private void stop(RPCXException failure) {
            ConnectionCallback<C> callback = over();
            try {
                stopWaiting(pending, this);
            } finally {
                if (callback != null) {
                    tellFailed(callback, failure);
                }
            }
        }

        /**
         * Marks the wait as ended. After that, reads {@code pending}, and removes the call from the connection found
         * there. {@link #waitFor} may run on another thread at the same time. It stores another connection in
         * {@code pending} and adds the call there, and after that checks whether the wait has ended. So at least one of
         * the two threads removes the call. Otherwise that connection could keep the call.
         */
        @Override
        public boolean giveUp() {
            boolean isFirst = over() != null;
            stopWaiting(pending, this);
            return isFirst;
        }

        /**
         * If the wait has failed, first creates the error for the call, and then marks the wait as ended. So if there
         * is no memory for the error, the wait is not marked, and the timer for the call's deadline can still end the
         * wait.
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
                end(taken);
            }
        }

        /**
         * Ends the wait with an error, and reports the error to the circuit breaker. Does nothing if the wait has ended
         * before.
         */
        private void endFailed(RPCXException failure) {
            ConnectionCallback<C> callback = over();
            if (callback != null) {
                tellFailed(callback, failure);
            }
        }

        private void tellFailed(ConnectionCallback<C> callback, RPCXException failure) {
            try {
                recordOutcome(Health.Outcome.of(failure, times, givenNanos, 0), permit);
            } finally {
                callback.ended(null, failure);
            }
        }

        private void end(C connected) {
            ConnectionCallback<C> callback = over();
            if (callback != null) {
                callback.ended(connected, null);
            }
        }

        /**
         * Marks the wait as ended, stops counting the call as waiting, and cancels the timer of the wait.
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

    /**
     * Gets the result of a call's wait for a connection. The callback is called at most once, and exactly one of its
     * arguments is null.
     */
    public interface ConnectionCallback<C> {
        void ended(@Nullable C connected, @Nullable RPCXException failure);
    }

    /** Throws if the calling thread has been interrupted, since such a thread cannot wait for a reply. */
    static void refuseInterrupted() {
        if (Thread.currentThread().isInterrupted()) {
            throw ClientCallErrors.interrupted(RPCXException.Executed.NOT_EXECUTED);
        }
    }

    /**
     * Blocks the calling thread until the call has ended, and returns the result of the call. If there is no reply by
     * the deadline, the event loop usually ends the call. If the event loop is held up, the calling thread cancels the
     * call {@code ClientCall.MARGIN_NANOS} after the deadline.
     */
    public final <T> T await(CallFuture<T> call, long deadlineNanos) {
        try {
            long left = deadlineNanos - ticker().nanoTime() + ClientCall.MARGIN_NANOS;
            return call.get(Math.max(0, left), TimeUnit.NANOSECONDS);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof RPCXException known ? known : new IllegalStateException(e.getCause());
        } catch (TimeoutException e) {
            call.cancel(true);
            throw LocalFailure.asPublicException(ClientCallErrors.unheard());
        } catch (InterruptedException e) {
            call.cancel(true);
            Thread.currentThread().interrupt();
            throw ClientCallErrors.interrupted(RPCXException.Executed.MAYBE);
        }
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
            // the message says that the client is closed, and not why a connection has failed
            why = "the client is closed";
        }
        if (LocalFailure.isNoRoom(cause)) {
            // the client has run out of memory, which says nothing about the service
            return LocalFailure.noRoom(this + ": " + why, RPCXException.Executed.NOT_EXECUTED);
        }
        return ClientCallErrors.unreachable(this, why, said != null && said.isVisible ? cause : null);
    }

    /**
     * Returns the text of a failure as one line of visible characters, since a peer may have written the text. The line
     * is cached, because all calls that wait for the same connection get the same failure.
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

    /** Text of a failure as one line, with a weak reference to the failure. */
    private static final class FailureLine extends WeakReference<Throwable> {
        private final String line;

        /**
         * Whether the complete texts of the failure and of its causes consist of visible characters. If not, the
         * failure does not become the cause of the errors that calls get.
         */
        private final boolean isVisible;

        FailureLine(Throwable failure) {
            super(failure);
            this.line = VisibleText.line(ThrowableText.message(failure), ThrowableText.MAX_WHY);
            this.isVisible = VisibleText.isOf(failure);
        }
    }

    /**
     * Returns the name of the route, which the errors of calls contain. Each error has a copy of the name, so the name
     * has to be short even if the service has many instances.
     */
    @Override
    public abstract String toString();
}
