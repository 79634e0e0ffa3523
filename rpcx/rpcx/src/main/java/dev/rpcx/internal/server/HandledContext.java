package dev.rpcx.internal.server;

import dev.rpcx.Interceptor;
import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.HandledCall;
import dev.rpcx.internal.call.TimedContext;
import dev.rpcx.internal.wire.MetadataFields;
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
 * Context of one call that a server handles, on either wire. It records whether the handler has started. It counts the
 * threads that run code of the call, without the call's own thread. It keeps the tasks that run when the call is
 * cancelled. Unlike the call object, a context is never used for a second call.
 */
public final class HandledContext extends TimedContext implements HandledCall {
    /** Bit in the field {@code handler} that is set when the call's handler starts, after the last interceptor. */
    private static final int ENTERED = 1;

    /**
     * Bit in the field {@code handler} that is set when the outcome of the call is decided. From then on, the call's
     * handler must not start any more.
     */
    private static final int BARRED = 2;

    /**
     * Bit in the field {@code handler} that is set if the call is over while threads that {@link CallThreads} counts
     * still run for the call. The reply may not have been sent yet.
     */
    private static final int OVER = 4;

    /**
     * Bit in the field {@code handler} that is set if the last of the call's threads has to remove the handler from the
     * count of running handlers in its method's {@link AdmissionLimit}.
     */
    private static final int LEAVE_PENDING = 8;

    /**
     * Bit in the field {@code handler} that is set if the handler or an interceptor has produced a result. It is set
     * only together with {@code LEAVE_PENDING}. The last of the call's threads reads this bit when it removes the
     * handler from the count.
     */
    private static final int DONE = 16;

    /**
     * Amount that is added to the field {@code handler} for each counted thread. The field divided by this amount,
     * rounded down, is the number of threads that {@link CallThreads} counts for the call. The handler's own thread is
     * not included.
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

    /** Time at which the first frame of the call arrived, in nanoseconds of the ticker. */
    private final long arrivedNanos;

    /** Whether the call has been cancelled. Written while holding the lock of {@code this}, and read by any thread. */
    private volatile boolean cancelled;

    /**
     * Value of {@code cancelTasks} for a call that is over. A task that is added to such a call is dropped, or runs
     * immediately if the call has been cancelled.
     */
    private static final List<Runnable> NOBODY = List.of();

    /**
     * Tasks to run when the call is cancelled, and the {@link DetachableStage}s that replace returned stages. A cancel
     * calls {@link DetachableStage#cancelSource} of such a stage, and does not run the stage itself. Null until the
     * first task or stage is added, and perhaps again after {@link #cancel} or {@link #giveUp}. Guarded by
     * {@code this}.
     */
    private @Nullable List<Runnable> cancelTasks;

    /** Whether {@link #giveUp} has been called, or the call is over. Guarded by {@code this}. */
    private boolean isGivenUp;

    /**
     * State of the handler and of its call: the bits {@code ENTERED} to {@code DONE}, and above these bits the number
     * of the call's further threads. The bits {@code ENTERED}, {@code BARRED}, {@code LEAVE_PENDING} and {@code DONE}
     * matter only if the call has interceptors. The event loop, the threads that run code of the call, and threads that
     * end futures of the handler or of interceptors change the field. Each change is one atomic operation.
     */
    private volatile int handler;

    /** Metadata for the reply or the error of the call. Written while holding the lock of {@code this}. */
    private volatile Metadata replyMetadata = Metadata.EMPTY;

    /**
     * Runs the rest of the call's chain of interceptors on threads for handlers of the call's method; null if the call
     * has no interceptors.
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

    @Override
    public synchronized void reply(String name, String value) {
        Metadata more = replyMetadata.with(name, value);
        MetadataFields.checkReply(more);
        replyMetadata = more;
    }

    /** Returns the metadata for the reply or the error of the call. */
    Metadata replyMetadata() {
        return replyMetadata;
    }

    /**
     * Runs the handler. Called when the last interceptor passes the call on, and not at all if the method has no
     * interceptors. An interceptor may pass the call on more than once, and also on a thread of its own. Such a thread
     * is counted as one of the call's threads.
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
     * Records that the handler is about to start, on the call's own thread or on another thread that already counts as
     * one of the call's threads.
     *
     * @return false if the call has ended and the handler must not start
     */
    boolean enterHandler() {
        return enterUnlessBarred(ENTERED, 0);
    }

    /**
     * Records that the handler is about to start on a thread of an interceptor. That thread counts as one of the call's
     * threads until {@link #endThread} is called.
     *
     * @return false if the call has ended: the handler must not start, and the thread is not counted
     */
    boolean enterHandlerOnThread() {
        return enterUnlessBarred(ENTERED, THREAD);
    }

    /**
     * Sets bits of the field {@code handler} and adds to the number of threads in that field, unless the call has
     * ended. This method does all this in one atomic operation. If it used two, the call could end between them, and
     * its object could start to serve another call.
     *
     * @param bits bits to set
     * @param threads {@code THREAD} to count one thread; 0 to count none
     * @return false if the call has ended, so that nothing was changed
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
     * @return whether the start of the handler has been recorded; always false for a call without interceptors
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
     * Withdraws the steps of the call's chain of interceptors that still wait for a thread of the pool, so that they do
     * not run. Each waiting step is counted as one of the call's threads.
     *
     * @param before value of the field {@code handler} when the call ended; if no thread was counted in it, no step
     *     waits
     */
    private void takeStepsBack(int before) {
        CallThreads.Steps given = steps;
        if (before >= THREAD && given != null) {
            given.callEnded();
        }
    }

    /** Counts one more thread that is about to run code of the call. The handler's own thread is not counted. */
    void beginThread() {
        HANDLER.getAndAdd(this, THREAD);
    }

    /**
     * Counts a thread that will run the rest of the call's chain of interceptors.
     *
     * @return false if the call has ended and the rest of the chain must not run
     */
    boolean beginStep() {
        return enterUnlessBarred(0, THREAD);
    }

    /**
     * Stops counting one of the call's threads, which has finished its work for the call. If this thread is the last
     * one and the bit {@code LEAVE_PENDING} is set, this method first removes the handler from the count of running
     * handlers in the {@link AdmissionLimit} of the handler's method. When no thread is counted any more, the object of
     * a call that is over may serve another call.
     *
     * @return true if the thread was the call's last one and the call is over
     */
    boolean endThread(CallThreads.Call call) {
        while (true) {
            int before = handler;
            boolean isLast = before / THREAD == 1;
            if (isLast && (before & LEAVE_PENDING) != 0) {
                if (HANDLER.compareAndSet(this, before, before & ~(LEAVE_PENDING | DONE))) {
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
            // the failure is only reported, because endThread still has to stop counting the thread
            ThreadTools.report(t);
        }
    }

    /**
     * Prevents the call's handler from starting, or from starting again, and returns whether the handler may leave its
     * method's {@link AdmissionLimit} now.
     *
     * @param isDone whether the call has produced a result
     * @return false if threads still run for the call, since one of them may run the handler; the handler then stays
     *     counted until the last of these threads ends
     */
    boolean mayLeaveNow(boolean isDone) {
        int before;
        int pending;
        do {
            before = handler;
            pending = before < THREAD ? 0 : isDone ? LEAVE_PENDING | DONE : LEAVE_PENDING;
        } while (!HANDLER.compareAndSet(this, before, before | BARRED | pending));
        takeStepsBack(before);
        return pending == 0;
    }

    public boolean hasThreads() {
        return handler >= THREAD;
    }

    /**
     * Records that the call is over and its handler must not start any more.
     *
     * @return false if other threads than the handler's own still run for the call; {@link #endThread} then returns
     *     true for the last of these threads
     */
    public boolean endUnlessThreads() {
        if (steps != null) {
            // A call that returns a stream does not end when its handler returns, so the code that runs after the
            // handler may not have called barHandler.
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
     * Sets the object that runs parts of the call's chain of interceptors on threads for handlers of the call's method.
     * Called before the first interceptor runs, and only if the call has interceptors.
     */
    public void setSteps(CallThreads.Steps given) {
        steps = given;
    }

    /**
     * Clears the references of this context to the call object, to the tasks for a cancel and to the
     * {@link DetachableStage}s. Called after the call is over, since other code may keep the context. For example, the
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
     * has checked that the call has not ended. The step may return a lazy stage, which starts its work only when a
     * callback is attached. In this case, {@link #ownIfActive} attaches a callback to the lazy stage, and another stage
     * is returned in its place. {@link ServerMethod#invoke} says why the callback is attached on this thread.
     *
     * @param steps {@link CallThreads.Steps} of the call; null if the call has no interceptors
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
     * Returns what {@link #own(CompletionStage)} returns for {@code result}, if {@code result} is a stage that may be
     * lazy. A lazy stage may start its work only when a callback is attached: see {@link Stages#isPassive}. Any other
     * result is returned unchanged. A call without interceptors, for which {@code given} is null, and a method that
     * returns a stream also keep their result.
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
     * Runs the next step of the call's chain of interceptors later, on a thread for handlers of the call's method.
     * {@link CallThreads} counts that thread for the call until the thread has run the step.
     *
     * @return stage that ends with the result of the step; the stage has failed already if the call has ended
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
     * Adds a task that runs when the call is cancelled. A {@link DetachableStage} is not run: the cancel of the call
     * calls its {@link DetachableStage#cancelSource} instead. Does nothing if the call is over. The caller holds the
     * lock of this object.
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
     * @return tasks that the caller has to run now, in the order of the list. The tasks that users gave to
     *     {@link #onCancel} are last, since they may wait for threads that the other tasks interrupt, or for RPCs that
     *     the other tasks cancel
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
     * Returns the stage that interceptors and the server use in place of {@code returned}, which is the stage that the
     * handler or an interceptor has returned. If {@link Stages#isDone} says that {@code returned} has ended, the result
     * is {@code returned} itself. Otherwise the result is a new {@link DetachableStage}. The {@code DetachableStage}
     * belongs to this call alone, and ends at the latest when the call is given up.
     */
    CompletionStage<?> own(CompletionStage<?> returned) {
        return own(returned, null);
    }

    /**
     * Does the same as {@link #own(CompletionStage)}, and can also refuse null as the result.
     *
     * @param nullRefused message of the exception with which the stage fails if the result of {@code returned} is null;
     *     null to allow that result
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
            // The event loop may have cancelled the call before the DetachableStage was added. That cancel did not
            // reach the source of the DetachableStage, so the source is cancelled here. The check comes after the
            // addition, since a cancel between the two would otherwise be missed.
            made.cancelSource(this);
        }
        return made;
    }

    /**
     * Returns {@code brought} if this stage was made for this call. Otherwise passes {@code brought} to
     * {@link #own(CompletionStage)}, and returns the result. A stage that was made for another call has to be replaced,
     * since it does not end when this call ends.
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
     * Returns whether a thread that is not the call's own thread is running a part of the call's chain of interceptors.
     * That part may be the handler.
     */
    boolean isHandlerBehind() {
        CallThreads.Steps its = steps;
        return its != null && its.isAnyBehind();
    }

    /**
     * Makes the {@link DetachableStage}s of this call stop waiting for their sources. Called when a call with
     * interceptors has its result, or when nobody waits for the result of the call any more.
     *
     * @return stages whose sources have not ended. The caller has to make {@link DetachableStage#run} run for each of
     *     them, which ends the stage
     */
    synchronized List<DetachableStage> giveUp() {
        isGivenUp = true;
        List<Runnable> all = cancelTasks;
        if (all == null) {
            return List.of();
        }
        // Both lists are made first. If there is no memory for them, this method fails before it has given up any
        // stage.
        List<DetachableStage> stages = new ArrayList<>(all.size());
        // If another thread still runs the handler, a later cancel of the call has to reach that thread. Therefore the
        // tasks that such a cancel runs are kept.
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
