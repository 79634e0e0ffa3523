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
 * Context of a call that a server handles, on either wire. It keeps the state of the call's handler and the number of
 * the threads that run for the call, and tells whoever wants to hear of its cancel. The object of a call may serve
 * another one later; its context belongs to this call alone, and may be kept for longer than the call takes.
 */
public final class HandledContext extends TimedContext implements HandledCall {
    /** Bit: the handler has started, after the last interceptor. */
    private static final int ENTERED = 1;

    /** Bit: the call has ended, which is what its caller is told, so the handler may not start any more. */
    private static final int BARRED = 2;

    /** Bit: the call is over but for its threads, or but for these and its reply. */
    private static final int OVER = 4;

    /** Bit: the last of the call's threads has to stop counting the handler in the limit of its method. */
    private static final int LEAVES = 8;

    /** Bit that goes with {@code LEAVES}: the handler, or an interceptor before it, has brought a result. */
    private static final int DONE = 16;

    /**
     * Unit of the count of threads: the bits from this one on count those that run for the call, see
     * {@link CallThreads}.
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

    /** Time at which the call's first frame was there. */
    private final long arrivedNanos;

    private volatile boolean cancelled;

    /**
     * Value of {@code cancelTasks} for a call that is over. A call that was not cancelled by then takes no more tasks,
     * and nobody will be told.
     */
    private static final List<Runnable> NOBODY = List.of();

    /**
     * Tasks that {@link #onCancel} was given, and stages that interceptors have been given; null for none yet. Guarded
     * by {@code this}.
     */
    private @Nullable List<Runnable> cancelTasks;

    /** Whether the call's result is not waited for any more. Guarded by {@code this}. */
    private boolean isGivenUp;

    /**
     * State of the handler as bits, where there are interceptors, and the count of the threads that run for the call
     * beside its handler.
     */
    private volatile int handler;

    /** Continues the call's chain where its handlers run; null where the call has no interceptors. */
    private CallThreads.@Nullable Steps steps;

    /** @param peer principal that the certificate of the connection's peer names; null for none */
    public HandledContext(long deadlineNanos, Metadata metadata, @Nullable Principal peer, Ticker ticker) {
        this(ticker.nanoTime(), deadlineNanos, metadata, peer, ticker);
    }

    /** @param arrivedNanos time at which the call's first frame was there */
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
     * Runs the handler, after the last interceptor. An interceptor may have the handler start more than once, and on a
     * thread of its own: such a thread is counted among those of the call.
     *
     * @throws RPCXException the call has ended, and the handler does not start
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
     * Notes that the handler is about to start, on a thread that keeps the call from ending.
     *
     * @return false if it may not start
     */
    boolean enterHandler() {
        return enterUnlessBarred(ENTERED, 0);
    }

    /**
     * Notes that the handler is about to start on another thread, which is counted, and which {@link #endThread} counts
     * back.
     *
     * @return false if it may not start
     */
    boolean enterHandlerOnThread() {
        return enterUnlessBarred(ENTERED, THREAD);
    }

    /**
     * Sets bits and counts threads in one step: between two steps the call may end, and its object serve another one.
     */
    private boolean enterUnlessBarred(int said, int threads) {
        int before;
        do {
            before = handler;
            if ((before & BARRED) != 0) {
                return false;
            }
        } while (!HANDLER.compareAndSet(this, before, (before | said) + threads));
        return true;
    }

    boolean isHandlerEntered() {
        return (handler & ENTERED) != 0;
    }

    /**
     * Notes that the call has ended: its handler does not start any more, nor once more.
     *
     * @return whether the handler has started
     */
    public boolean barHandler() {
        int before = (int) HANDLER.getAndBitwiseOr(this, BARRED);
        takeStepsBack(before);
        return (before & ENTERED) != 0;
    }

    /** Whether the call has ended, so that its handler does not start any more. */
    boolean isBarred() {
        return (handler & BARRED) != 0;
    }

    /**
     * Takes back steps of the call's chain that wait for a thread, where there may be any: they are counted among its
     * threads.
     */
    private void takeStepsBack(int before) {
        CallThreads.Steps given = steps;
        if (before >= THREAD && given != null) {
            given.callEnded();
        }
    }

    /** Counts a thread that begins to run for the call, beside its handler. */
    void beginThread() {
        HANDLER.getAndAdd(this, THREAD);
    }

    /**
     * Counts a thread for the rest of the call's chain.
     *
     * @return false if the call has ended: nothing of that may run
     */
    boolean beginStep() {
        return enterUnlessBarred(0, THREAD);
    }

    /**
     * Counts a thread back that is done. Where the call leaves the limit of its method with this thread, it does so
     * while the thread is counted: afterwards the call's object may serve another one.
     *
     * @return whether the call was over but for this thread
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
            // the thread is counted back all the same
            ThreadTools.report(t);
        }
    }

    /**
     * Notes that the call is about to leave the limit of its method: its handler does not start any more, nor once
     * more.
     *
     * @param isDone whether the call has brought a result
     * @return false if threads run for the call, which may run the handler: then the last of them leaves the limit
     */
    boolean leavesUnlessThreads(boolean isDone) {
        int before;
        int left;
        do {
            before = handler;
            left = before < THREAD ? 0 : isDone ? LEAVES | DONE : LEAVES;
        } while (!HANDLER.compareAndSet(this, before, before | BARRED | left));
        takeStepsBack(before);
        return left == 0;
    }

    public boolean hasThreads() {
        return handler >= THREAD;
    }

    /**
     * Notes that the call is over, and that its handler does not start any more.
     *
     * @return false if threads run for the call: then {@link #endThread} says when they are done
     */
    public boolean endUnlessThreads() {
        if (steps != null) {
            // a stream ends by its last item, which comes from its publisher: the end of its handler has not barred the
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

    /** Sets what continues the call's chain. Called before the chain begins. */
    public void setSteps(CallThreads.Steps given) {
        steps = given;
    }

    /**
     * Drops what the context holds of a call that is over: whoever keeps the context, such as the future of a call that
     * was made for this one, keeps no more of the call.
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
     * Takes a step of the chain on this thread, after it has been decided that the call goes on. Where the step brings
     * a stage that may do its work when a dependent is attached, one is attached here, in the call's context: see
     * {@link ServerMethod#invoke}.
     *
     * @param steps steps of the call; null for none
     */
    static @Nullable Object proceedHere(
            HandledContext handled,
            CallThreads.@Nullable Steps steps,
            Interceptor.Invocation call,
            Interceptor.Next step)
            throws Throwable {
        TimedContext here = CurrentCall.get();
        if (here != null && here.whole() == handled) {
            return handled.begun(steps, step.proceed(call));
        }
        CurrentCall.set(handled);
        try {
            return handled.begun(steps, step.proceed(call));
        } finally {
            CurrentCall.set(here);
        }
    }

    /**
     * Puts a stage of the call's own in the place of one that may do work when a dependent is attached. A publisher may
     * be a stage as well, but is not taken for one.
     */
    private @Nullable Object begun(CallThreads.@Nullable Steps given, @Nullable Object result) {
        return result instanceof CompletionStage<?> stage
                        && !Stages.isPassive(stage)
                        && given != null
                        && !given.bringsStream()
                ? own(stage)
                : result;
    }

    /**
     * Takes one step of the call's chain later, where the method's handlers run, on a thread that is counted.
     *
     * @return stage of the step's end; a failed one where the call has ended
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
        Given.notNull(task, "task", "what runs");
        synchronized (this) {
            if (!cancelled) {
                addCancelTask(task);
                return;
            }
        }
        task.run();
    }

    /** Adds a task, unless the call is over. Called under the lock. */
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
     * Notes that the call has been cancelled.
     *
     * @return tasks that have to run now, one after the other: first those that end the call's threads and the calls
     *     that were made for it, since the tasks that {@link #onCancel} was given may take long, or wait for such
     *     threads and calls
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
     * Makes the stage that interceptors see instead of the handler's, or instead of one that may do work when a
     * dependent is attached. It is the call's own, and ends when the call is given up.
     */
    CompletionStage<?> own(CompletionStage<?> returned) {
        return own(returned, null);
    }

    /** @param nullRefused text with which the stage fails if it brings null; null where null can be sent */
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
            // whoever has cancelled the call may not have found this stage among the tasks
            made.cancelSource(this);
        }
        return made;
    }

    /**
     * As {@code own}, for a stage that may be the call's own already. A stage of another call, such as one that an
     * interceptor gives to all equal calls, is treated as any other: it knows nothing of the end of this call.
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

    /** Whether a thread runs a part of the call's chain that an interceptor has gone on with. */
    boolean isHandlerBehind() {
        CallThreads.Steps its = steps;
        return its != null && its.isAnyBehind();
    }

    /**
     * Gives up the stages of a call that has its result, or whose result is not waited for any more.
     *
     * @return stages that interceptors have been given and whose sources have not ended; these stages have to be told
     */
    synchronized List<DetachableStage> giveUp() {
        isGivenUp = true;
        List<Runnable> all = cancelTasks;
        if (all == null) {
            return List.of();
        }
        // made first: where there is no memory for this no stage has been given up
        List<DetachableStage> stages = new ArrayList<>(all.size());
        // a handler that runs on may still be cancelled, so its tasks stay
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
