package dev.rpcx;

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
 * The context of a call that a server handles, on either wire. It keeps what has been said of the call's handler and
 * the number of the threads that run for the call, and tells whoever wants to hear of its cancel. The object of a call
 * may serve another one later; its context is of this call alone, and may be kept for longer than the call takes.
 */
final class HandledContext extends TimedContext implements HandledCall {
    /** The handler has begun, behind the last interceptor. */
    private static final int ENTERED = 1;

    /** The call has ended, which is what its caller is told; so the handler may not begin any more. */
    private static final int BARRED = 2;

    /** The call is over but for its threads, or its handler is and its reply has not left. */
    private static final int OVER = 4;

    /** The last of the call's threads leaves the limit of its method. */
    private static final int LEAVES = 8;

    /** And the handler, or what stands before it, has brought a result. */
    private static final int DONE = 16;

    /** The bits from here on count the threads that run for the call: see {@link CallThreads}. */
    private static final int THREAD = 32;

    private static final VarHandle HANDLER;

    static {
        try {
            HANDLER = MethodHandles.lookup().findVarHandle(HandledContext.class, "handler", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /** When the call's first frame was there. */
    private final long arrivedNanos;

    private volatile boolean cancelled;

    /** The list of a call that is over and was not cancelled. It takes nothing more, and nobody will be told. */
    private static final List<Runnable> NOBODY = List.of();

    /**
     * What {@link #onCancel} was given, and the stages that interceptors have been given; null for none yet. Guarded by
     * this.
     */
    private @Nullable List<Runnable> cancelTasks;

    /** The call's result is not waited for any more. Guarded by this. */
    private boolean isGivenUp;

    /**
     * What has been said of the handler, as bits, where there are interceptors, and the threads that run for the call
     * beside its handler.
     */
    private volatile int handler;

    /** Goes on with the call where its handlers run; null where it has no interceptors. */
    private CallThreads.@Nullable Steps steps;

    /** @param peer who the connection's certificate says is at its other end */
    HandledContext(long deadlineNanos, Metadata metadata, @Nullable Principal peer, Ticker ticker) {
        this(ticker.nanoTime(), deadlineNanos, metadata, peer, ticker);
    }

    /** @param arrivedNanos when the call's first frame was there */
    HandledContext(long arrivedNanos, long deadlineNanos, Metadata metadata, @Nullable Principal peer, Ticker ticker) {
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
     * Runs the handler, behind the last interceptor. An interceptor may have it begin more than once, and on a thread
     * of its own: such a thread is counted among those of the call.
     *
     * @throws RPCXException the call has ended, and the handler does not begin
     */
    @Nullable
    Object handle(Interceptor.Invocation call, Interceptor.Next begins) throws Throwable {
        CallThreads.Steps given = steps;
        if (given != null && !given.isCounted()) {
            return given.handle(call, begins);
        }
        if (!enterHandler()) {
            throw hasEnded();
        }
        return begins.proceed(call);
    }

    /**
     * The handler is about to begin, on a thread that the call keeps until it has ended.
     *
     * @return false if it may not begin
     */
    boolean enterHandler() {
        return enterUnlessBarred(ENTERED, 0);
    }

    /** The handler is about to begin on another thread, which {@link #endThread} counts back. @return as above */
    boolean enterHandlerOnThread() {
        return enterUnlessBarred(ENTERED, THREAD);
    }

    /** In one step: the call may end, and its object serve another one, between two. */
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
     * The call has ended: its handler does not begin any more, nor once more.
     *
     * @return whether it has begun
     */
    boolean barHandler() {
        int before = (int) HANDLER.getAndBitwiseOr(this, BARRED);
        takeStepsBack(before);
        return (before & ENTERED) != 0;
    }

    /** Whether the call has ended, so that its handler does not begin any more. */
    boolean isBarred() {
        return (handler & BARRED) != 0;
    }

    /** Steps of the call's chain that wait for a thread are counted among its threads. */
    private void takeStepsBack(int before) {
        CallThreads.Steps given = steps;
        if (before >= THREAD && given != null) {
            given.callEnded();
        }
    }

    /** A thread begins to run for the call, beside its handler. */
    void beginThread() {
        HANDLER.getAndAdd(this, THREAD);
    }

    /** The same for the rest of the call's chain. @return false if the call has ended: nothing of that may run */
    boolean beginStep() {
        return enterUnlessBarred(0, THREAD);
    }

    /**
     * That thread is done. Where the call leaves with it, it does so while the thread is counted: afterwards the call's
     * object may serve another one.
     *
     * @return whether the call was over but for this one
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
            call.leaveNow(isDone);
        } catch (Throwable t) {
            // the thread is counted back all the same
            ThreadTools.report(t);
        }
    }

    /**
     * The call is about to leave the limit of its method: its handler does not begin any more, nor once more.
     *
     * @param isDone whether it has brought a result
     * @return false if threads run for it, which may be the handler's: then the last of them leaves
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

    boolean hasThreads() {
        return handler >= THREAD;
    }

    /**
     * The call is over, and its handler does not begin any more.
     *
     * @return false if threads run for it: then {@link #endThread} says when they are done
     */
    boolean endUnlessThreads() {
        if (steps != null) {
            // a stream ends by its last item, which has come from its publisher and not from its handler
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

    /** Before the call's chain begins. */
    void goesOnBy(CallThreads.Steps given) {
        steps = given;
    }

    /**
     * The call is over: whoever keeps this context, such as the future of a call that was made for it, keeps no more of
     * the call.
     */
    void goesNoFurther() {
        if (steps != null) {
            steps = CallThreads.NO_STEPS;
        }
        synchronized (this) {
            isGivenUp = true;
            cancelTasks = NOBODY;
        }
    }

    static RPCXException hasEnded() {
        return RPCXException.refused(RPCXException.Code.CANCELLED, "the call has ended before its handler began");
    }

    @Override
    public @Nullable Object proceed(Interceptor.Invocation call, Interceptor.Next step) throws Throwable {
        if (isBarred()) {
            throw hasEnded();
        }
        CallThreads.Steps given = steps;
        if (given != null && given.isElsewhere()) {
            return given.proceed(call, step);
        }
        return proceedHere(this, given, call, step);
    }

    /**
     * On this thread, where it has been decided that the call goes on. A stage of somebody else's class that the step
     * brings is begun here, in the call's context: see {@link ServerMethod#invoke}.
     *
     * @param steps those of the call, null for none
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

    /** A publisher may be a stage as well, and is none here. */
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
     * @return how it ends; a failure where the call has ended
     */
    CompletionStage<?> proceedLater(Interceptor.Invocation call, Interceptor.Next step) {
        CallThreads.Steps given = steps;
        try {
            return (given == null ? CallThreads.NO_STEPS : given).proceed(call, step);
        } catch (RPCXException hasEnded) {
            return CompletableFuture.failedFuture(hasEnded);
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

    /** Under the lock. */
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
     * @return what has to run now, one after the other: first what ends the call's threads and the calls that were made
     *     for it, since what {@link #onCancel} was given may take long, or wait for these
     */
    synchronized List<Runnable> cancel() {
        cancelled = true;
        List<Runnable> all = cancelTasks;
        if (all == null) {
            return List.of();
        }
        List<Runnable> ends = new ArrayList<>();
        List<Runnable> tasks = new ArrayList<>();
        List<Runnable> stages = null;
        for (Runnable task : all) {
            if (task instanceof OwnStage own) {
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
     * The stage that interceptors see instead of the handler's, or instead of one that may work: it is the call's own,
     * and ends when that is given up.
     */
    CompletionStage<?> own(CompletionStage<?> returned) {
        return own(returned, null);
    }

    /** @param nullRefused why the stage fails if it brings null; null where null can be sent */
    CompletionStage<?> own(CompletionStage<?> returned, @Nullable String nullRefused) {
        if (Stages.isDone(returned)) {
            return nullRefused != null && Stages.hasBroughtNull(returned)
                    ? CompletableFuture.failedFuture(new IllegalStateException(nullRefused))
                    : returned;
        }
        OwnStage made = new OwnStage(returned, nullRefused);
        if (isAdded(made)) {
            made.begin();
        } else {
            made.run();
        }
        if (isCancelled()) {
            // whoever has cancelled the call may not have met this one
            made.cancelSource(this);
        }
        return made;
    }

    /**
     * The same for one that may be the call's own already. That of another call, such as one that an interceptor gives
     * to all equal calls, is as any other: it knows nothing of the end of this call.
     */
    CompletionStage<?> asOwn(CompletionStage<?> brought) {
        return brought instanceof OwnStage seen && has(seen) ? seen : own(brought);
    }

    private synchronized boolean has(OwnStage seen) {
        return cancelTasks != null && cancelTasks.contains(seen);
    }

    private synchronized boolean isAdded(OwnStage made) {
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
     * The call has its result, or it is not waited for any more.
     *
     * @return stages that interceptors have been given and whose source has not ended, which have to be told
     */
    synchronized List<OwnStage> giveUp() {
        isGivenUp = true;
        List<Runnable> all = cancelTasks;
        if (all == null) {
            return List.of();
        }
        // first: where there is no memory for this nothing has been given up
        List<OwnStage> stages = new ArrayList<>(all.size());
        // a handler that runs on has a cancel still to come
        List<Runnable> others = isHandlerBehind() ? new ArrayList<>(all.size()) : null;
        for (Runnable task : all) {
            if (task instanceof OwnStage own) {
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
