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
 * Context of one call that a server handles, on either wire. It knows whether the handler has started, counts the
 * further threads that run for the call, and has the tasks to run when the call is cancelled. Unlike the call object, a
 * context is never used for a second call.
 */
public final class HandledContext extends TimedContext implements HandledCall {
    /** Bit of {@code handler}: the handler itself has started, after the last interceptor. */
    private static final int ENTERED = 1;

    /** Bit of {@code handler}: the handler must not start any more, since the outcome of the call is decided. */
    private static final int BARRED = 2;

    /** Bit of {@code handler}: the call is over, except for its threads and perhaps the sending of its reply. */
    private static final int OVER = 4;

    /**
     * Bit of {@code handler}: when the last of the call's threads ends, the limit of the method has to stop counting
     * the handler.
     */
    private static final int LEAVES = 8;

    /**
     * Bit of {@code handler}, set only together with {@code LEAVES}: the handler or an interceptor has produced a
     * result.
     */
    private static final int DONE = 16;

    /**
     * Value that stands for one thread in {@code handler}, whose bits from this one on count threads. These are the
     * threads that {@link CallThreads} counts for the call, besides the thread of the handler.
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

    /** Time at which the first frame of the call had arrived, by the ticker. */
    private final long arrivedNanos;

    private volatile boolean cancelled;

    /**
     * Value of {@code cancelTasks} for a call that is over. Tasks that are added later are dropped, or run immediately
     * if the call has been cancelled.
     */
    private static final List<Runnable> NOBODY = List.of();

    /**
     * Tasks to run when the call is cancelled, and stages that interceptors see in place of the returned ones. Null if
     * there has been neither yet. Guarded by {@code this}.
     */
    private @Nullable List<Runnable> cancelTasks;

    /** Whether the call has its result, or nobody waits for the result any more. Guarded by {@code this}. */
    private boolean isGivenUp;

    /**
     * State of the handler and of its call, as bits, with a number of threads from the bit {@code THREAD} on. The bits
     * {@code ENTERED}, {@code BARRED}, {@code LEAVES} and {@code DONE} matter only if the call has interceptors.
     */
    private volatile int handler;

    /**
     * Continues the call's chain of interceptors where the handlers of its method run; null if the call has no
     * interceptors.
     */
    private CallThreads.@Nullable Steps steps;

    /**
     * Creates the context of a call that has just arrived.
     *
     * @param peer principal that the peer's certificate names; null if there is none
     */
    public HandledContext(long deadlineNanos, Metadata metadata, @Nullable Principal peer, Ticker ticker) {
        this(ticker.nanoTime(), deadlineNanos, metadata, peer, ticker);
    }

    /**
     * Creates the context of a call.
     *
     * @param arrivedNanos time at which the first frame of the call arrived, by the ticker
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
     * Runs the handler, after the last interceptor. An interceptor may run the handler more than once. It may also run
     * the handler on a thread of its own, which then counts as one of the call's threads.
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
     * Records that the handler is about to start on a thread for which the end of the call waits.
     *
     * @return false if the call has ended: then the handler must not start
     */
    boolean enterHandler() {
        return enterUnlessBarred(ENTERED, 0);
    }

    /**
     * Records that the handler is about to start on an interceptor's thread, and counts this thread for the call. The
     * thread is counted until {@link #endThread} is called.
     *
     * @return false if the call has ended: then the handler must not start, and the thread is not counted
     */
    boolean enterHandlerOnThread() {
        return enterUnlessBarred(ENTERED, THREAD);
    }

    /**
     * Sets bits of {@code handler} and counts threads there, unless the call has ended. Both happen in one atomic
     * operation: between two operations, the call could end, and its object could start to serve another call.
     *
     * @param bits bits to set
     * @param threads {@code THREAD} to count one thread; 0 to count none
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
     * Records that the call has ended, so that its handler cannot start any more.
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
     * Withdraws the parts of the call's chain of interceptors that wait for a thread. Each of them is counted as a
     * thread already.
     *
     * @param before value of {@code handler} when the call ended
     */
    private void takeStepsBack(int before) {
        CallThreads.Steps given = steps;
        if (before >= THREAD && given != null) {
            given.callEnded();
        }
    }

    /** Counts a thread that is about to run for the call, besides the thread of its handler. */
    void beginThread() {
        HANDLER.getAndAdd(this, THREAD);
    }

    /**
     * Counts a thread that will run the rest of the call's chain of interceptors.
     *
     * @return false if the call has ended: then the rest of the chain must not run
     */
    boolean beginStep() {
        return enterUnlessBarred(0, THREAD);
    }

    /**
     * Stops counting a thread that has finished its work for the call. If it is the last one, and the method's limit is
     * still to stop counting the handler, the limit does so first. Once no thread is counted, the call object may serve
     * another call.
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
     * Prevents the handler from starting, because the limit of its method is about to stop counting it.
     *
     * @param isDone whether the call has produced a result
     * @return false if threads run for the call, since one of them may run the handler: then the limit counts the
     *     handler until the last of them ends
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
     * Records that the call is over, so that its handler cannot start any more.
     *
     * @return false if further threads run for the call: then {@link #endThread} returns true for the last of them
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

    /**
     * Sets the object that runs the rest of the call's chain of interceptors. Called before the first interceptor runs.
     */
    public void setSteps(CallThreads.Steps given) {
        steps = given;
    }

    /**
     * Clears the references of a context whose call is over, since other code may keep the context. For example, the
     * future of an RPC that the handler has made refers to the context.
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
     * Runs the next step of the call's chain of interceptors on the calling thread, in the call's context. The caller
     * has checked that the call has not ended. If the step returns a lazy stage, which may start its work only when a
     * callback is attached, a callback is attached here: see {@link ServerMethod#invoke}.
     *
     * @param steps steps of the call; null if the call has no interceptors
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
     * Returns the result, or what {@code own} returns for it if it is a lazy stage. A lazy stage may start its work
     * only when a callback is attached. The publisher of a stream is never replaced.
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
     * Runs the next step of the call's chain of interceptors later, where the handlers of its method run. The thread
     * that runs the step is counted for the call.
     *
     * @return stage that ends with the result of the step; it has failed already if the call has ended
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

    /**
     * Adds a task to those that run when the call is cancelled. Does nothing if the call is over. Called with the lock
     * of this object held.
     */
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
     *     since they may wait for threads and calls that the other tasks interrupt or cancel
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
     * Returns a {@link DetachableStage} for interceptors to see in place of the returned stage. It belongs to this call
     * alone, and ends at the latest when the call is given up. If the returned stage has ended already, it is returned
     * itself.
     */
    CompletionStage<?> own(CompletionStage<?> returned) {
        return own(returned, null);
    }

    /**
     * Does what {@link #own(CompletionStage)} does, and can also refuse null as the result.
     *
     * @param nullRefused message of the exception with which the stage fails if the result of {@code returned} is null;
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
     * Returns the stage itself if it was made for this call; otherwise returns what {@code own} returns for it. A stage
     * that was made for another call is replaced too, since it does not end when this call ends.
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

    /** Returns whether a thread other than the call's own is running a part of the call's chain of interceptors. */
    boolean isHandlerBehind() {
        CallThreads.Steps its = steps;
        return its != null && its.isAnyBehind();
    }

    /**
     * Stops waiting for the stages that interceptors still see, because the call has its result or nobody waits for it.
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
