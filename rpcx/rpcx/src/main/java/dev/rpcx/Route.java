package dev.rpcx;

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

/** Where the calls of a proxy go: one address, or whichever of several instances is chosen for each. */
abstract class Route {
    private final ClientCore client;
    private final RetryBudget budget = new RetryBudget();

    /**
     * By {@link ClientMethod#index}: as many as there are methods of the client's interfaces that an instance has
     * refused.
     */
    private final Map<Integer, RefusalBudget> refusals = new ConcurrentHashMap<>();

    private final @Nullable CircuitBreaker breaker;

    /** Calls that nobody blocks for and that have no connection yet. */
    private final AtomicInteger waiting = new AtomicInteger();

    /** What calls are told of the latest failure. */
    private volatile @Nullable FailureLine failureLine;

    Route(ClientCore client) {
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

    /**
     * Of calls that one instance has refused, apart from all others, and of each method by itself: what is nowhere
     * takes nothing from calls of what some instances have.
     *
     * @param method its {@link ClientMethod#index}
     */
    final RefusalBudget refusals(int method) {
        return refusals.computeIfAbsent(method, first -> new RefusalBudget(ticker()));
    }

    /** A one-way call has failed. Its text is not logged, since a peer may have a part in it. Any thread. */
    final void oneWayFailed(Object method, Throwable thrown) {
        client.oneWayFailed("a one-way call of " + method + " at " + this, thrown);
    }

    /** A task that can be cancelled; null if the client is closed, and it will not run. */
    final @Nullable Future<?> timer(Runnable task, long nanos) {
        return client.timer(task, nanos);
    }

    /**
     * For what a call keeps of its request while it waits for a connection. Whoever gives it back has to know it before
     * anything is charged: where the caller's stack ends in that, nothing is held that nobody gives back.
     */
    final WaitingBytes waitingBytes() {
        return new WaitingBytes(this);
    }

    /** What a waiting call holds: nothing yet, so many bytes, or {@link #ENDED}. */
    static final class WaitingBytes extends AtomicInteger implements BiConsumer<Object, Throwable> {
        private static final int ENDED = -1;

        private final Route route;
        private final Account account;

        WaitingBytes(Route route) {
            this.route = route;
            this.account = route.client.waiting;
        }

        /**
         * Charges so many bytes, until they are given back; where they have been already, not at all.
         *
         * @throws RPCXException {@link RPCXException.Code#OVERLOADED} if this client holds too much of that
         */
        void hold(int bytes) {
            if (!account.take(Resource.REQUEST_BYTES, bytes)) {
                throw RPCXException.refused(
                        RPCXException.Code.OVERLOADED,
                        route + ": too many bytes of requests wait for a connection"
                                + " (expected: fewer large ones at once)");
            }
            if (!compareAndSet(0, bytes)) {
                account.give(Resource.REQUEST_BYTES, bytes);
            }
        }

        @Override
        public void accept(@Nullable Object value, @Nullable Throwable thrown) {
            giveBack();
        }

        /** A second time does nothing. */
        void giveBack() {
            int held = getAndSet(ENDED);
            if (held > 0) {
                account.give(Resource.REQUEST_BYTES, held);
            }
        }
    }

    /** The end of the client waits for the end of this call, which has been accepted. */
    final void closesBehind(CallFuture<?> call) {
        client.closesBehind(call);
    }

    /** A call begins. As {@link #calledAgain}, and it earns a part of a retry. */
    final long called() {
        long permit = calledAgain();
        budget.called();
        return permit;
    }

    /**
     * A call begins that has been made once already.
     *
     * @return what its circuit says of it, to be told to {@link #counted} with how it ends, and to {@link #over} in any
     *     case: see {@link CircuitBreaker#permit}
     */
    final long calledAgain() {
        if (breaker == null) {
            return CircuitBreaker.GIVEN;
        }
        long permit = breaker.permit();
        if (permit == CircuitBreaker.REFUSED) {
            throw RPCXException.refused(
                    RPCXException.Code.UNAVAILABLE,
                    this + ": the circuit is open, since most of the latest calls have failed");
        }
        return permit;
    }

    /** A call has ended, or could not be sent: once, with its last attempt, since its caller hears of no other. */
    final void counted(Health.Outcome outcome, long permit) {
        if (breaker != null) {
            breaker.ended(outcome, permit);
        }
    }

    /**
     * Whether a call may find another instance than the one that has refused it, which may be none of the service's by
     * now.
     *
     * @param used null where the call does not say
     */
    abstract boolean hasOthers(@Nullable ClientAddress used);

    /**
     * The call that was told this has ended, in whatever way. Where it was a trial of the circuit and nobody has said
     * how it ended, since it never left, it says nothing, and the next call is the trial. Does nothing otherwise.
     */
    final void over(long permit) {
        if (permit != CircuitBreaker.GIVEN) {
            counted(Health.Outcome.UNTOLD, permit);
        }
    }

    /** Whether an instance in health other than this one is there now. May look at all of them. */
    boolean hasFreeBeside(ClientAddress asked) {
        return false;
    }

    /** A connection that is there, of an instance in health that is not among these; null if there is none. */
    abstract @Nullable ClientConnection readyBeside(List<ClientAddress> asked);

    /** As {@link #ready(int)}, another instance than this one where there is one. */
    final @Nullable ClientConnection readyElsewhere(int key, @Nullable ClientAddress than) {
        ClientConnection other = than == null ? null : readyBeside(List.of(than));
        return other == null ? ready(key) : other;
    }

    /**
     * A connection that is there, or null. On the way of every call: allocates nothing.
     *
     * @param key of the argument that decides, or 0
     */
    abstract @Nullable ClientConnection ready(int key);

    /** One that is there or will be. Ends with an exception when there is none to be had. */
    abstract Coming<ClientConnection> connect(int key);

    abstract Coming<ClassicClientConnection> connectClassic();

    /** Waits for a connection, at most until the deadline. Not on an event loop, which would wait for itself. */
    final ClientConnection await(int key, long deadlineNanos, AnswerTimes times, long permit) {
        refuseBlocking();
        ClientConnection ready = ready(key);
        while (ready == null) {
            ClientConnection connected = awaitOne(key, deadlineNanos, times, permit);
            ready = taken(key, connected);
        }
        return ready;
    }

    /**
     * What a call takes that has waited for this connection. Others that have waited too may have filled it: then that
     * is another one, or this one, which refuses it; or null, where one more is coming.
     */
    private @Nullable ClientConnection taken(int key, ClientConnection connected) {
        return connected.isFull() ? ready(key) : connected;
    }

    private ClientConnection awaitOne(int key, long deadlineNanos, AnswerTimes times, long permit) {
        Coming<ClientConnection> coming = connect(key);
        Blocked<ClientConnection> caller = new Blocked<>();
        if (!coming.add(caller)) {
            coming.whenComplete(caller::ended);
        }
        long left = deadlineNanos - ticker().nanoTime();
        try {
            return caller.get(Math.max(0, left), TimeUnit.NANOSECONDS);
        } catch (ExecutionException e) {
            ClientConnection instead = coming.instead();
            if (instead != null) {
                return instead;
            }
            RPCXException unreachable = unreachable(e.getCause());
            counted(Health.Outcome.of(unreachable), permit);
            throw unreachable;
        } catch (TimeoutException e) {
            leave(coming, caller);
            RPCXException late = late();
            counted(Health.Outcome.of(late, times, left, 0), permit);
            throw late;
        } catch (InterruptedException e) {
            leave(coming, caller);
            Thread.currentThread().interrupt();
            throw interrupted();
        }
    }

    /** A thread that waits for a connection. */
    private static final class Blocked<C> extends CompletableFuture<C> implements Coming.Waiter<C> {
        @Override
        public void ended(@Nullable C connected, @Nullable Throwable failure) {
            if (connected != null) {
                complete(connected);
            } else {
                completeExceptionally(Objects.requireNonNull(failure));
            }
        }
    }

    /** The call waits no longer; it may have been told meanwhile. */
    private static <C> void leave(Coming<C> coming, Coming.Waiter<C> call) {
        if (coming.remove(call)) {
            coming.abandon();
        }
    }

    /**
     * The same for a call that nobody blocks for: {@code then} is told of a connection, or at the deadline at the
     * latest that there is none, unless the call is given up before. As many may wait as a connection takes.
     *
     * @return null if {@code then} has been told
     */
    final @Nullable Wait await(
            int key, long deadlineNanos, AnswerTimes times, long permit, Then<ClientConnection> then) {
        Source<ClientConnection> source = new Source<>() {
            @Override
            public Coming<ClientConnection> connect() {
                return Route.this.connect(key);
            }

            @Override
            public @Nullable ClientConnection taken(ClientConnection connected) {
                return Route.this.taken(key, connected);
            }
        };
        return await(source, deadlineNanos, times, permit, then);
    }

    /** The same on the classic wire. */
    final @Nullable Wait awaitClassic(
            long deadlineNanos, AnswerTimes times, long permit, Then<ClassicClientConnection> then) {
        return await(this::connectClassic, deadlineNanos, times, permit, then);
    }

    /** Where calls get their connections. */
    @FunctionalInterface
    private interface Source<C> {
        /** One that is there or will be. */
        Coming<C> connect();

        /** What a call takes that has been told of this one; null if it waits for one more. */
        default @Nullable C taken(C connected) {
            return connected;
        }
    }

    private <C> @Nullable Wait await(
            Source<C> source, long deadlineNanos, AnswerTimes times, long permit, Then<C> then) {
        // only what is counted behind it has a place: whatever fails before leaves none taken
        Coming<C> coming = source.connect();
        Waiting<C> call = new Waiting<>(source, coming, deadlineNanos, times, permit, then);
        call.waitFor(coming);
        if (call.isOver()) {
            return null;
        }
        if (!call.takePlace()) {
            call.refuse();
            return null;
        }
        // also of a call that has not been told since there was no memory for it
        call.startTimer();
        return call;
    }

    /** Calls that nobody blocks for and that wait for a connection: for tests. */
    final int waitingCalls() {
        return waiting.get();
    }

    /** A call's wait for a connection. */
    interface Wait {
        /**
         * Ends the wait. From any thread.
         *
         * @return false if the call has been told how its wait has ended, or is about to be; otherwise it will not be
         */
        boolean giveUp();

        /** Whether the call has been told how its wait has ended. From any thread. */
        boolean isOver();
    }

    /** A call that waits for a connection, until there is one, its time is over or nobody wants it any more. */
    private final class Waiting<C> implements Coming.Waiter<C>, Wait, Runnable {
        private final Source<C> source;
        private final long deadlineNanos;
        private final long givenNanos;
        private final AnswerTimes times;
        private final long permit;
        private volatile Coming<C> coming;

        // guarded by this
        /** Null once the wait is over: whoever has this object left holds nothing of the call. */
        private @Nullable Then<C> then;

        private @Nullable Future<?> timer;
        private boolean isOver;

        /** The call is counted by {@link #waiting}. */
        private boolean hasPlace;

        Waiting(Source<C> source, Coming<C> coming, long deadlineNanos, AnswerTimes times, long permit, Then<C> then) {
            this.source = source;
            this.coming = coming;
            this.deadlineNanos = deadlineNanos;
            this.givenNanos = deadlineNanos - ticker().nanoTime();
            this.times = times;
            this.permit = permit;
            this.then = then;
        }

        /** It may be there already, or the call be over: then there is no wait. */
        void waitFor(Coming<C> next) {
            coming = next;
            if (!next.add(this)) {
                next.whenComplete(this::ended);
            } else if (isOver() && next.remove(this)) {
                next.abandon();
            }
        }

        /**
         * The call may have been told meanwhile. Nothing is called between the count and what is stored of it, here as
         * in {@link #leavePlace}.
         *
         * @return false if too many wait
         */
        synchronized boolean takePlace() {
            if (isOver) {
                return true;
            }
            int all = waiting.incrementAndGet();
            hasPlace = true;
            return all <= Wire.MAX_SLOTS;
        }

        /** Too many wait. */
        void refuse() {
            RPCXException refused = RPCXException.refused(
                    RPCXException.Code.OVERLOADED,
                    Route.this + ": " + Wire.MAX_SLOTS + " calls wait for a connection (expected: fewer)");
            leave(coming, this);
            // also where it is about to wait for another one
            end(null, refused);
        }

        @Override
        public synchronized boolean isOver() {
            return isOver;
        }

        private synchronized void leavePlace() {
            if (hasPlace) {
                waiting.decrementAndGet();
                hasPlace = false;
            }
        }

        /** The call may have been told meanwhile. */
        void startTimer() {
            Future<?> started = client.timer(this, Math.max(0, deadlineNanos - ticker().nanoTime()));
            if (started == null) {
                // without a timer nobody would end the call in its time
                if (coming.remove(this)) {
                    coming.abandon();
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

        /** The call's time is over. Also for a call that somebody was about to tell, and could not go on. */
        @Override
        public void run() {
            RPCXException late = late();
            leave(coming, this);
            endFailed(late);
            leavePlace();
        }

        /** The wait is over first: whoever is about to have the call wait for another connection looks at that. */
        @Override
        public boolean giveUp() {
            boolean isFirst = over() != null;
            leave(coming, this);
            return isFirst;
        }

        /** What the call is told is made before the wait is over: where there is no memory for it, the timer tells. */
        @Override
        public void ended(@Nullable C connected, @Nullable Throwable failure) {
            C found = connected == null ? coming.instead() : connected;
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

        /** A failure that may count against the service, if it is the one that ends the wait. */
        private void endFailed(RPCXException failure) {
            Then<C> told = over();
            if (told == null) {
                return;
            }
            try {
                counted(Health.Outcome.of(failure, times, givenNanos, 0), permit);
            } finally {
                told.ended(null, failure);
            }
        }

        private void end(@Nullable C connected, @Nullable RPCXException failure) {
            Then<C> told = over();
            if (told != null) {
                told.ended(connected, failure);
            }
        }

        /** @return what to tell, to the first one who ends the wait; null to the others */
        private @Nullable Then<C> over() {
            Future<?> started;
            Then<C> told;
            synchronized (this) {
                isOver = true;
                started = timer;
                told = then;
                then = null;
            }
            leavePlace();
            if (started != null) {
                started.cancel(false);
            }
            return told;
        }
    }

    /** Told once how the wait for a connection has ended: with one or with an error. */
    interface Then<C> {
        void ended(@Nullable C connected, @Nullable RPCXException failure);
    }

    /** A blocking call by a thread that has been interrupted is not sent: its caller would not wait for the reply. */
    static void refuseInterrupted() {
        if (Thread.currentThread().isInterrupted()) {
            throw interrupted();
        }
    }

    /**
     * Blocks until the call is over. Event loops end calls whose time is over; should this one's not, since it is held
     * up, the caller gives the call up a while later.
     */
    final <T> T await(CallFuture<T> call, long deadlineNanos) {
        try {
            long left = deadlineNanos - ticker().nanoTime() + ClientCall.MARGIN_NANOS;
            return call.get(Math.max(0, left), TimeUnit.NANOSECONDS);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof RPCXException known ? known : new IllegalStateException(e.getCause());
        } catch (TimeoutException e) {
            call.cancel(true);
            throw OwnEnd.told(ClientCall.withoutAWord());
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
        LoopThread.refuse("a blocking call", "an asynchronous call, or a handler or callback that runs elsewhere");
    }

    private RPCXException late() {
        return RPCXException.refused(RPCXException.Code.DEADLINE_EXCEEDED, this + ": not connected in time");
    }

    private RPCXException unreachable(@Nullable Throwable cause) {
        FailureLine said = cause == null ? null : line(cause);
        String why = said == null ? "no connection" : said.line;
        if (client.isClosed()) {
            // how its connections and attempts end is not what a caller has to look for
            why = "the client is closed";
        }
        if (OwnEnd.isNoRoom(cause)) {
            // nothing of the service: this side has no memory to hear what it says
            return OwnEnd.noRoom(this + ": " + why, RPCXException.Executed.NOT_EXECUTED);
        }
        return new RPCXException(
                RPCXException.Code.UNAVAILABLE,
                this + ": " + why,
                RPCXException.Executed.NOT_EXECUTED,
                said != null && said.isVisible ? cause : null);
    }

    /**
     * Somebody else's text, which goes to logs, as one visible line. It is made once for all calls that wait for the
     * same attempt, which hear of its failure in one turn of the event loop.
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

    /** A failure, which this does not keep, and its line. */
    private static final class FailureLine extends WeakReference<Throwable> {
        private final String line;

        /** Only then do errors have it as their cause. */
        private final boolean isVisible;

        FailureLine(Throwable failure) {
            super(failure);
            this.line = VisibleText.line(ThrowableText.message(failure), ThrowableText.MAX_WHY);
            this.isVisible = VisibleText.isOf(failure);
        }
    }

    /** What calls that fail name. Each makes a text of it, so it is short however many instances there are. */
    @Override
    public abstract String toString();
}
