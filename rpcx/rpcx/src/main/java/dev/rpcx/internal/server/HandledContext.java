package dev.rpcx.internal.server;

import dev.rpcx.Interceptor;
import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.HandledCall;
import dev.rpcx.internal.call.TimedContext;
import io.netty.util.concurrent.Ticker;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.security.Principal;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * Context of a call that a server handles, on either wire. It keeps the state of the handler, the number of threads
 * that run for the call, and the tasks to run when the call is cancelled. Unlike the call object, a context is never
 * used for a second call.
 */
public final class HandledContext extends TimedContext implements HandledCall {
    /** Bit of {@code handler}: the handler has started, after the last interceptor. */
    private static final int ENTERED = 1;

    /** Bit of {@code handler}: the handler must not start any more, because the outcome of the call is decided. */
    private static final int BARRED = 2;

    /** Bit of {@code handler}: the call is over, except for its threads and perhaps its reply. */
    private static final int OVER = 4;

    /**
     * Bit of {@code handler}: when the last of the call's threads ends, the limit of the method has to stop counting
     * the handler.
     */
    private static final int LEAVES = 8;

    /**
     * Bit of {@code handler}, set only together with {@code LEAVES}: the handler, or an interceptor before it, has
     * produced a result.
     */
    private static final int DONE = 16;

    /**
     * Lowest bit of the thread count in {@code handler}: the number of threads that run for the call in addition to the
     * thread of its handler. See {@link CallThreads}.
     */
    private static final int THREAD = 32;

    private static final VarHandle HANDLER;

    static {
        try {
            HANDLER = MethodHandles.lookup().findVarHandle(HandledContext.class, "handler", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /** Time at which the first frame of the call had arrived. */
    private final long arrivedNanos;

    private volatile boolean cancelled;

    /**
     * Value of {@code cancelTasks} for a call that is over. Tasks that are added later are dropped, unless the call has
     * been cancelled: then they run at once.
     */
    private static final List<Runnable> NOBODY = List.of();

    /**
     * Tasks that were given to {@link #onCancel}, and stages that interceptors have been given. Null if there has been
     * neither yet. Guarded by {@code this}.
     */
    private @Nullable List<Runnable> cancelTasks;

    /** Whether nobody waits for the call's result any more. Guarded by {@code this}. */
    private boolean isGivenUp;

    /**
     * State of the handler and of its call, as bits, with the thread count from {@code THREAD} on. {@code ENTERED},
     * {@code BARRED}, {@code LEAVES} and {@code DONE} matter only if the call has interceptors.
     */
    private volatile int handler;

    /**
     * Continues the call's chain of interceptors where the handlers of its method run; null if the call has no
     * interceptors.
     */
    private CallThreads.@Nullable Steps steps;

    /**
     * Creates the context of a call that arrives now.
     *
     * @param peer principal that the peer's certificate names; null if there is none
     */
    public HandledContext(long deadlineNanos, Metadata metadata, @Nullable Principal peer, Ticker ticker) {
        this(ticker.nanoTime(), deadlineNanos, metadata, peer, ticker);
    }

    /**
     * Creates the context of a call.
     *
     * @param arrivedNanos time, by the ticker, at which the first frame of the call arrived
     * @param peer principal that the peer's certificate names; null if there is none
     */
    public HandledContext(
            long arrivedNanos, long deadlineNanos, Metadata metadata, @Nullable Principal peer, Ticker ticker) {
        super(deadlineNanos, metadata, peer, ticker);
        this.arrivedNanos = arrivedNanos;
    }

    @Override
    public long ageNanos() {
        return nanoTime() - arrivedNanos;
    }

    @Override
    public boolean isCancelled() {
        return cancelled;
    }

    /**
     * Runs the handler, after the last interceptor. An interceptor may run the handler more than once, or on a thread
     * of its own, which then counts as one of the call's threads.
     *
     * @throws RPCXException the call has ended, so the handler does not start
     */
    public @Nullable Object handle(Interceptor.Invocation call, Interceptor.Next begins) throws Throwable {
        CallThreads.Steps given = steps;
        if (given != null && !given.isCounted()) {
            return given.handle(call, begins);
        }
        if (!enterHandler()) {
            throw endedError();
        }
        return begins.proceed(call);
    }

    /**
     * Records that the handler is about to start on a thread that keeps the call from ending.
     *
     * @return false if the handler must not start, because the call has ended
     */
    boolean enterHandler() {
        return enterUnlessBarred(ENTERED, 0);
    }

    /**
     * Records that the handler is about to start on another thread, and counts that thread until {@link #endThread} is
     * called.
     *
     * @return false if the handler must not start, because the call has ended: then the thread is not counted
     */
    boolean enterHandlerOnThread() {
        return enterUnlessBarred(ENTERED, THREAD);
    }

    /**
     * Sets bits of {@code handler} and counts threads. Both happen in one atomic operation: between two operations, the
     * call could end, and its object could start serving another call.
     *
     * @param bits bits to set
     * @param threads {@code THREAD} to count one thread, 0 for none
     * @return false if the call has ended: then nothing is changed
     */
    private boolean enterUnlessBarred(int bits, int threads) {
        int before;
        do {
            before = handler;
            if ((before & BARRED) != 0) {
                return false;
            }
        } while (!HANDLER.compareAndSet(this, before, (before | bits) + threads));
        return true;
    }

    boolean isHandlerEntered() {
        return (handler & ENTERED) != 0;
    }

    /**
     * Records that the call has ended. Its handler cannot start any more.
     *
     * @return whether the handler has started
     */
    public boolean barHandler() {
        int before = (int) HANDLER.getAndBitwiseOr(this, BARRED);
        takeStepsBack(before);
        return (before & ENTERED) != 0;
    }

    /** Returns whether the call has ended, so that its handler cannot start any more. */
    boolean isBarred() {
        return (handler & BARRED) != 0;
    }

    /**
     * Takes back the steps of the call's chain that wait for a thread. Such a step already counts as a thread.
     *
     * @param before value of {@code handler} when the call ended
     */
    private void takeStepsBack(int before) {
        CallThreads.Steps given = steps;
        if (before >= THREAD && given != null) {
            given.callEnded();
        }
    }

    /** Counts a thread that begins to run for the call, in addition to the thread of its handler. */
    void beginThread() {
        HANDLER.getAndAdd(this, THREAD);
    }

    /**
     * Counts a thread that will run the rest of the call's chain.
     *
     * @return false if the call has ended: then the rest of the chain must not run
     */
    boolean beginStep() {
        return enterUnlessBarred(0, THREAD);
    }

    /**
     * Stops counting a thread that has finished. If it is the last one and {@code LEAVES} is set, the limit of the
     * method stops counting the handler first. Once no thread is counted, the call object may serve another call.
     *
     * @return true if this was the last thread, and everything else of the call is over
     */
    boolean endThread(CallThreads.Call call) {
        while (true) {
            int before = handler;
            boolean isLast = before / THREAD == 1;
            if (isLast && (before & LEAVES) != 0) {
                if (HANDLER.compareAndSet(this, before, before & ~(LEAVES | DONE))) {
                    leave(call, (before & DONE) != 0);
                }
            } else if (HANDLER.compareAndSet(this, before, before - THREAD)) {
                return isLast && (before & OVER) != 0;
            }
        }
    }

    private static void leave(CallThreads.Call call, boolean isDone) {
        try {
            call.releaseAdmission(isDone);
        } catch (Throwable t) {
            // the failure must not keep the thread from being counted as ended
            ThreadTools.report(t);
        }
    }

    /**
     * Records that the limit of the method is about to stop counting the handler. The handler cannot start any more.
     *
     * @param isDone whether the call has produced a result
     * @return false if threads run for the call, since one of them may run the handler: then the handler is counted
     *     until the last of them ends
     */
    boolean leavesUnlessThreads(boolean isDone) {
        int before;
        int leaving;
        do {
            before = handler;
            leaving = before < THREAD ? 0 : isDone ? LEAVES | DONE : LEAVES;
        } while (!HANDLER.compareAndSet(this, before, before | BARRED | leaving));
        takeStepsBack(before);
        return leaving == 0;
    }

    public boolean hasThreads() {
        return handler >= THREAD;
    }

    /**
     * Records that the call is over. Its handler cannot start any more.
     *
     * @return false if threads run for the call: then {@link #endThread} returns true for the last of them
     */
    public boolean endUnlessThreads() {
        if (steps != null) {
            // barHandler has not been called yet for a call that returns a stream, since such a call goes on after its
            // handler
            barHandler();
        }
        int before;
        do {
            before = handler;
            if (before < THREAD) {
                return true;
            }
        } while (!HANDLER.compareAndSet(this, before, before | OVER));
        return false;
    }

    /** Sets the object that continues the call's chain. Called before the chain begins. */
    public void setSteps(CallThreads.Steps given) {
        steps = given;
    }

    /**
     * Clears the context's references to a call that is over, since other code may keep the context for longer: for
     * example the future of a call that was made while this one was handled.
     */
    void releaseReferences() {
        if (steps != null) {
            steps = CallThreads.NO_STEPS;
        }
        synchronized (this) {
            isGivenUp = true;
            cancelTasks = NOBODY;
        }
    }

    static RPCXException endedError() {
        return RPCXException.refused(RPCXException.Code.CANCELLED, "the call has ended before its handler began");
    }

    @Override
    public @Nullable Object proceed(Interceptor.Invocation call, Interceptor.Next step) throws Throwable {
        if (isBarred()) {
            throw endedError();
        }
        CallThreads.Steps given = steps;
        if (given != null && given.isElsewhere()) {
            return given.proceed(call, step);
        }
        return proceedHere(this, given, call, step);
    }

    /**
     * Runs a step of the chain on the calling thread, in the context of the call. The caller has checked that the call
     * has not ended. If the step returns a stage that may do its work only when a dependent is attached, a dependent is
     * attached here: see {@link ServerMethod#invoke}.
     *
     * @param steps steps of the call; null if it has none
     */
    static @Nullable Object proceedHere(
            HandledContext handled,
            CallThreads.@Nullable Steps steps,
            Interceptor.Invocation call,
            Interceptor.Next step)
            throws Throwable {
        TimedContext here = CurrentCall.get();
        if (here != null && here.whole() == handled) {
            return handled.ownIfActive(steps, step.proceed(call));
        }
        CurrentCall.set(handled);
        try {
            return handled.ownIfActive(steps, step.proceed(call));
        } finally {
            CurrentCall.set(here);
        }
    }

    /**
     * Returns the result. If the result is a stage that may do its work only when a dependent is attached, returns what
     * {@code own} returns for that stage. The publisher of a stream is never replaced.
     */
    private @Nullable Object ownIfActive(CallThreads.@Nullable Steps given, @Nullable Object result) {
        return result instanceof CompletionStage<?> stage
                        && !Stages.isPassive(stage)
                        && given != null
                        && !given.bringsStream()
                ? own(stage)
                : result;
    }

    /**
     * Runs a step of the call's chain later, where the handlers of the method run, on a thread that is counted.
     *
     * @return stage that ends with the result of the step; already failed if the call has ended
     */
    CompletionStage<?> proceedLater(Interceptor.Invocation call, Interceptor.Next step) {
        CallThreads.Steps given = steps;
        try {
            return (given == null ? CallThreads.NO_STEPS : given).proceed(call, step);
        } catch (RPCXException ended) {
            return CompletableFuture.failedFuture(ended);
        }
    }

    @Override
    public void onCancel(Runnable task) {
        Given.notNull(task, "task", "a Runnable");
        synchronized (this) {
            if (!cancelled) {
                addCancelTask(task);
                return;
            }
        }
        task.run();
    }

    /** Adds a task to the tasks that a cancel runs. Does nothing if the call is over. Called while holding the lock. */
    private void addCancelTask(Runnable task) {
        if (cancelTasks == NOBODY) {
            return;
        }
        if (cancelTasks == null) {
            cancelTasks = new ArrayList<>();
        }
        cancelTasks.add(task);
    }

    /**
     * Records that the call has been cancelled.
     *
     * @return tasks that the caller has to run now, in this order. Tasks that users gave to {@link #onCancel} are last,
     *     since they may wait for the threads and calls that the other tasks interrupt or cancel
     */
    public synchronized List<Runnable> cancel() {
        cancelled = true;
        List<Runnable> all = cancelTasks;
        if (all == null) {
            return List.of();
        }
        List<Runnable> ends = new ArrayList<>();
        List<Runnable> tasks = new ArrayList<>();
        List<Runnable> stages = null;
        for (Runnable task : all) {
            if (task instanceof DetachableStage own) {
                if (stages == null) {
                    stages = new ArrayList<>();
                }
                stages.add(own);
                ends.add(() -> own.cancelSource(this));
            } else if (task instanceof CallThreads.Interruptible) {
                ends.add(task);
            } else {
                tasks.add(task);
            }
        }
        ends.addAll(tasks);
        cancelTasks = stages;
        return ends;
    }

    /**
     * Returns a stage for interceptors to see instead of {@code returned}. The new stage belongs to this call alone,
     * and ends when the call is given up: see {@link DetachableStage}. If {@code returned} has already ended, returns
     * {@code returned} itself.
     */
    CompletionStage<?> own(CompletionStage<?> returned) {
        return own(returned, null);
    }

    /**
     * Does what {@code own} with one parameter does.
     *
     * @param nullRefused text of the exception with which the stage fails if the result of {@code returned} is null;
     *     null if that result is allowed
     */
    CompletionStage<?> own(CompletionStage<?> returned, @Nullable String nullRefused) {
        if (Stages.isDone(returned)) {
            return nullRefused != null && Stages.hasBroughtNull(returned)
                    ? CompletableFuture.failedFuture(new IllegalStateException(nullRefused))
                    : returned;
        }
        DetachableStage made = new DetachableStage(returned, nullRefused);
        if (isAdded(made)) {
            made.begin();
        } else {
            made.run();
        }
        if (isCancelled()) {
            // a cancel that came before the stage was added has not reached the source
            made.cancelSource(this);
        }
        return made;
    }

    /**
     * Returns the given stage if it belongs to this call already, otherwise what {@code own} returns for it. A stage
     * that belongs to another call is replaced as well, since it does not end when this call ends.
     */
    CompletionStage<?> asOwn(CompletionStage<?> brought) {
        return brought instanceof DetachableStage seen && has(seen) ? seen : own(brought);
    }

    private synchronized boolean has(DetachableStage seen) {
        return cancelTasks != null && cancelTasks.contains(seen);
    }

    private synchronized boolean isAdded(DetachableStage made) {
        if (isGivenUp) {
            return false;
        }
        addCancelTask(made);
        return true;
    }

    /**
     * Returns whether a thread other than the call's own runs a part of the call's chain, because an interceptor has
     * proceeded to that part on that thread.
     */
    boolean isHandlerBehind() {
        CallThreads.Steps its = steps;
        return its != null && its.isAnyBehind();
    }

    /**
     * Gives up the stages of a call that has its result, or whose result nobody waits for any more.
     *
     * @return stages whose sources have not ended; the caller has to run them, so that they end
     */
    synchronized List<DetachableStage> giveUp() {
        isGivenUp = true;
        List<Runnable> all = cancelTasks;
        if (all == null) {
            return List.of();
        }
        // the lists are made first: if there is no memory for them, no stage has been given up
        List<DetachableStage> stages = new ArrayList<>(all.size());
        // a handler that runs on may still be cancelled, so its tasks are kept
        List<Runnable> others = isHandlerBehind() ? new ArrayList<>(all.size()) : null;
        for (Runnable task : all) {
            if (task instanceof DetachableStage own) {
                if (own.isOpen()) {
                    own.giveUp();
                    stages.add(own);
                }
            } else if (others != null) {
                others.add(task);
            }
        }
        cancelTasks = others;
        return stages;
    }
}
